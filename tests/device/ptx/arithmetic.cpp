// SPDX-License-Identifier: MIT
// Arithmetic, lane by lane. What PTX leaves to the device, such as the last bits of ex2.approx, is the nearest number.
#include "ptx.h"

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>
#include <type_traits>
#include <unordered_map>

namespace ptx
{
namespace
{
// Lanes that are not active keep what they have.
template <typename T> inline void put(T *to, const T *from, uint32_t active)
{
    if (active == ALL) {
        memcpy(to, from, sizeof(T) * LANES);
        return;
    }
    for (int l = 0; l < LANES; l++) {
        to[l] = (active >> l & 1u) != 0 ? from[l] : to[l];
    }
}

template <typename To, typename A, auto f> void unary(warp &w, const instruction &its)
{
    const A *a = w.lanes<A>(its.a);
    To       result[LANES];
    for (int l = 0; l < LANES; l++) {
        result[l] = f(a[l]);
    }
    put(w.lanes<To>(its.to), result, w.active);
}

template <typename To, typename A, typename B, auto f> void binary(warp &w, const instruction &its)
{
    const A *a = w.lanes<A>(its.a);
    const B *b = w.lanes<B>(its.b);
    To       result[LANES];
    for (int l = 0; l < LANES; l++) {
        result[l] = f(a[l], b[l]);
    }
    put(w.lanes<To>(its.to), result, w.active);
}

template <typename To, typename A, typename C, auto f> void ternary(warp &w, const instruction &its)
{
    const A *a = w.lanes<A>(its.a), *b = w.lanes<A>(its.b);
    const C *c = w.lanes<C>(its.c);
    To       result[LANES];
    for (int l = 0; l < LANES; l++) {
        result[l] = f(a[l], b[l], c[l]);
    }
    put(w.lanes<To>(its.to), result, w.active);
}

template <typename A, auto f> void compare(warp &w, const instruction &its)
{
    const A *a = w.lanes<A>(its.a), *b = w.lanes<A>(its.b);
    uint32_t result = 0;
    for (int l = 0; l < LANES; l++) {
        result |= (uint32_t)f(a[l], b[l]) << l;
    }
    w.predicates[its.to] = (w.predicates[its.to] & ~w.active) | (result & w.active);
}

template <typename T> void select(warp &w, const instruction &its)
{
    const T *a = w.lanes<T>(its.a), *b = w.lanes<T>(its.b);
    uint32_t which = w.predicates[its.c];
    T        result[LANES];
    for (int l = 0; l < LANES; l++) {
        result[l] = (which >> l & 1u) != 0 ? a[l] : b[l];
    }
    put(w.lanes<T>(its.to), result, w.active);
}

template <auto f> void logic(warp &w, const instruction &its)
{
    uint32_t result      = f(w.predicates[its.a], w.predicates[its.b]);
    w.predicates[its.to] = (w.predicates[its.to] & ~w.active) | (result & w.active);
}

// In another direction than to the nearest: fesetround orders itself among what is volatile.
template <int direction, auto f> __attribute__((optimize("rounding-math"))) float rounded(float a, float b, float c)
{
    volatile float x = a, y = b, z = c;
    std::fesetround(direction);
    volatile float result = f(x, y, z);
    std::fesetround(FE_TONEAREST);
    return result;
}

template <typename T> T maximum(T a, T b)
{
    if constexpr (std::is_floating_point<T>::value) {
        return a > b || b != b || (a == b && !std::signbit(a)) ? a : b;
    }
    return a > b ? a : b;
}
template <typename T> T minimum(T a, T b)
{
    if constexpr (std::is_floating_point<T>::value) {
        return a < b || b != b || (a == b && std::signbit(a)) ? a : b;
    }
    return a < b ? a : b;
}

template <typename T> T quotient(T a, T b)
{
    if constexpr (std::is_floating_point<T>::value) {
        return a / b;
    } else {
        return b == 0 ? (T)-1 : std::is_signed<T>::value && b == (T)-1 ? (T)(0 - (uint64_t)a) : (T)(a / b);
    }
}
template <typename T> T rest(T a, T b)
{
    return b == 0 ? a : std::is_signed<T>::value && b == (T)-1 ? 0 : (T)(a % b);
}

template <typename T> T left(T a, uint32_t by)
{
    return by < 8 * sizeof(T) ? (T)(a << by) : 0;
}
template <typename T> T right(T a, uint32_t by)
{
    return (T)(by < 8 * sizeof(T) ? a >> by : a < 0 ? -1 : 0);
}

// The upper half of a product.
template <typename T> T upper(T a, T b)
{
    typedef std::conditional_t<std::is_signed<T>::value, __int128, unsigned __int128> wide;
    return (T)(((wide)a * (wide)b) >> 8 * sizeof(T));
}

float divide_fast(float a, float b)
{
    float size = std::fabs(b);
    return size > 0x1p126f && size < std::numeric_limits<float>::infinity() ? (std::isinf(a) ? NAN : 0.0f * a * b)
                                                                            : a / b;
}
float flush(float a)
{
    return std::fabs(a) < 0x1p-126f ? std::copysign(0.0f, a) : a;
}

uint32_t permute(uint32_t a, uint32_t b, uint32_t selector)
{
    uint64_t bytes  = (uint64_t)b << 32 | a;
    uint32_t result = 0;
    for (int i = 0; i < 4; i++) {
        uint32_t which = selector >> 4 * i & 15u, byte = (uint32_t)(bytes >> 8 * (which & 7u)) & 0xffu;
        result |= ((which & 8u) != 0 ? (byte & 0x80u) != 0 ? 0xffu : 0u : byte) << 8 * i;
    }
    return result;
}

template <typename T> T insert(T bits, T into, uint32_t at, uint32_t count)
{
    const uint32_t width = 8 * sizeof(T);
    at &= 0xffu, count &= 0xffu;
    T all = count >= width ? (T) ~(T)0 : (T)(((T)1 << count) - 1), mask = at >= width ? 0 : (T)(all << at);
    return (into & ~mask) | ((at >= width ? 0 : (T)(bits << at)) & mask);
}
template <typename T> void insert_bits(warp &w, const instruction &its)
{
    const T        *a = w.lanes<T>(its.a), *b = w.lanes<T>(its.b);
    const uint32_t *c = w.lanes<uint32_t>(its.c), *d = w.lanes<uint32_t>(w.code->operands[its.more]);
    T               result[LANES];
    for (int l = 0; l < LANES; l++) {
        result[l] = insert(a[l], b[l], c[l], d[l]);
    }
    put(w.lanes<T>(its.to), result, w.active);
}

uint32_t reversed(uint32_t a)
{
    uint32_t result = 0;
    for (int i = 0; i < 32; i++) {
        result |= (a >> i & 1u) << (31 - i);
    }
    return result;
}

// Conversions of floating point to integers saturate; not a number becomes 0.
template <typename To, typename From> To integer(From a)
{
    if (a != a) {
        return 0;
    }
    From lowest = (From)std::numeric_limits<To>::min(), highest = (From)std::numeric_limits<To>::max();
    return a <= lowest ? std::numeric_limits<To>::min() : a >= highest ? std::numeric_limits<To>::max() : (To)a;
}

uint16_t to_bf16(float a)
{
    uint32_t word;
    memcpy(&word, &a, sizeof(word));
    return a != a ? 0x7fff : (uint16_t)((word + 0x7fffu + (word >> 16 & 1u)) >> 16);
}

// Eight bits with so many of mantissa, rounded to nearest even, at most the largest number.
template <int mantissa, int bias, int largest> uint8_t to_fp8(float a)
{
    if (a != a) {
        return 0x7f;
    }
    double  size = std::fabs((double)a);
    int     exponent;
    uint8_t sign = std::signbit(a) ? 0x80 : 0;
    std::frexp(size, &exponent);
    exponent    = size == 0 ? 1 - bias : std::max(exponent - 1, 1 - bias);
    double step = std::ldexp(1.0, exponent - mantissa), units = std::nearbyint(std::min(size, 1e9) / step);
    double code = units + ((double)(exponent + bias - 1) * (1 << mantissa));
    return (uint8_t)(sign | (code > largest ? largest : (int)code));
}
uint16_t to_e4m3(float high, float low)
{
    return (uint16_t)(to_fp8<3, 7, 0x7e>(high) << 8 | to_fp8<3, 7, 0x7e>(low));
}
uint16_t to_e5m2(float high, float low)
{
    return (uint16_t)(to_fp8<2, 15, 0x7b>(high) << 8 | to_fp8<2, 15, 0x7b>(low));
}

typedef std::unordered_map<std::string, handler> table;

template <typename T> void add_all(table &to, const std::string &type)
{
    to["mov." + type] = unary<T, T, [](T a) { return a; }>;
    to["add." + type] = binary<T, T, T, [](T a, T b) { return (T)(a + b); }>;
    to["sub." + type] = binary<T, T, T, [](T a, T b) { return (T)(a - b); }>;
    to["min." + type] = binary<T, T, T, minimum<T>>;
    to["max." + type] = binary<T, T, T, maximum<T>>;
    to["neg." + type] = unary<T, T, [](T a) { return (T)-a; }>;
    to["abs." + type] =
        unary<T, T, [](T a) { return (T)std::abs((std::conditional_t<std::is_unsigned<T>::value, int64_t, T>)a); }>;
    to["selp." + type]    = select<T>;
    to["setp.eq." + type] = compare<T, [](T a, T b) { return a == b; }>;
    to["setp.ne." + type] = compare<T, [](T a, T b) { return a != b && a == a && b == b; }>;
    to["setp.lt." + type] = compare<T, [](T a, T b) { return a < b; }>;
    to["setp.le." + type] = compare<T, [](T a, T b) { return a <= b; }>;
    to["setp.gt." + type] = compare<T, [](T a, T b) { return (a > b); }>;
    to["setp.ge." + type] = compare<T, [](T a, T b) { return a >= b; }>;
}

template <typename T> void add_integer(table &to, const std::string &type)
{
    typedef std::conditional_t<sizeof(T) == 2, std::conditional_t<std::is_signed<T>::value, int32_t, uint32_t>,
                               std::conditional_t<std::is_signed<T>::value, int64_t, uint64_t>>
        wide;
    add_all<T>(to, type);
    to["div." + type]    = binary<T, T, T, quotient<T>>;
    to["rem." + type]    = binary<T, T, T, rest<T>>;
    to["shr." + type]    = binary<T, T, uint32_t, right<T>>;
    to["mul.lo." + type] = binary<T, T, T, [](T a, T b) { return (T)((uint64_t)a * (uint64_t)b); }>;
    to["mul.hi." + type] = binary<T, T, T, upper<T>>;
    to["mad.lo." + type] = ternary<T, T, T, [](T a, T b, T c) { return (T)((uint64_t)a * (uint64_t)b + (uint64_t)c); }>;
    if (sizeof(T) < 8) {
        to["mul.wide." + type] = binary<wide, T, T, [](T a, T b) { return (wide)((wide)a * (wide)b); }>;
        to["mad.wide." + type] = ternary<wide, T, wide, [](T a, T b, wide c) { return (wide)((wide)a * (wide)b + c); }>;
    }
}

template <typename T> void add_bits(table &to, const std::string &type)
{
    to["mov." + type]     = unary<T, T, [](T a) { return a; }>;
    to["selp." + type]    = select<T>;
    to["and." + type]     = binary<T, T, T, [](T a, T b) { return (T)(a & b); }>;
    to["or." + type]      = binary<T, T, T, [](T a, T b) { return (T)(a | b); }>;
    to["xor." + type]     = binary<T, T, T, [](T a, T b) { return (T)(a ^ b); }>;
    to["not." + type]     = unary<T, T, [](T a) { return (T)~a; }>;
    to["shl." + type]     = binary<T, T, uint32_t, left<T>>;
    to["shr." + type]     = binary<T, T, uint32_t, right<T>>;
    to["setp.eq." + type] = compare<T, [](T a, T b) { return a == b; }>;
    to["setp.ne." + type] = compare<T, [](T a, T b) { return a != b; }>;
}

template <typename T> void add_float(table &to, const std::string &type)
{
    add_all<T>(to, type);
    to["min.NaN." + type]  = binary<T, T, T, [](T a, T b) { return a != a || b != b ? (T)NAN : minimum<T>(a, b); }>;
    to["max.NaN." + type]  = binary<T, T, T, [](T a, T b) { return a != a || b != b ? (T)NAN : maximum<T>(a, b); }>;
    to["mul." + type]      = binary<T, T, T, [](T a, T b) { return a * b; }>;
    to["div.rn." + type]   = binary<T, T, T, quotient<T>>;
    to["rcp.rn." + type]   = unary<T, T, [](T a) { return 1 / a; }>;
    to["sqrt.rn." + type]  = unary<T, T, [](T a) { return std::sqrt(a); }>;
    to["fma.rn." + type]   = ternary<T, T, T, [](T a, T b, T c) { return std::fma(a, b, c); }>;
    to["setp.equ." + type] = compare<T, [](T a, T b) { return !(a < b || a > b); }>;
    to["setp.neu." + type] = compare<T, [](T a, T b) { return a != b; }>;
    to["setp.ltu." + type] = compare<T, [](T a, T b) { return !(a >= b); }>;
    to["setp.leu." + type] = compare<T, [](T a, T b) { return !(a > b); }>;
    to["setp.gtu." + type] = compare<T, [](T a, T b) { return !(a <= b); }>;
    to["setp.geu." + type] = compare<T, [](T a, T b) { return !(a < b); }>;
    to["setp.num." + type] = compare<T, [](T a, T b) { return a == a && b == b; }>;
    to["setp.nan." + type] = compare<T, [](T a, T b) { return a != a || b != b; }>;
    for (const char *name : {"add", "sub", "mul"}) {
        to[std::string(name) + ".rn." + type] = to[std::string(name) + "." + type];
    }
}

template <typename To, typename From> void add_integer_pair(table &to, const std::string &pair)
{
    to["cvt." + pair] = unary<To, From, [](From a) { return (To)a; }>;
}
template <typename From> void add_integers_from(table &to, const std::string &from)
{
    add_integer_pair<uint8_t, From>(to, "u8." + from);
    add_integer_pair<int8_t, From>(to, "s8." + from);
    add_integer_pair<uint16_t, From>(to, "u16." + from);
    add_integer_pair<int16_t, From>(to, "s16." + from);
    add_integer_pair<uint32_t, From>(to, "u32." + from);
    add_integer_pair<int32_t, From>(to, "s32." + from);
    add_integer_pair<uint64_t, From>(to, "u64." + from);
    add_integer_pair<int64_t, From>(to, "s64." + from);
    to["cvt.rn.f32." + from] = unary<float, From, [](From a) { return (float)a; }>;
    to["cvt.rn.f64." + from] = unary<double, From, [](From a) { return (double)a; }>;
}
template <typename To, typename From> void add_to_integer(table &to, const std::string &pair)
{
    to["cvt.rzi." + pair] = unary<To, From, integer<To, From>>;
    to["cvt.rni." + pair] = unary<To, From, [](From a) { return integer<To, From>(std::nearbyint(a)); }>;
    to["cvt.rmi." + pair] = unary<To, From, [](From a) { return integer<To, From>(std::floor(a)); }>;
    to["cvt.rpi." + pair] = unary<To, From, [](From a) { return integer<To, From>(std::ceil(a)); }>;
}
template <typename From> void add_float_from(table &to, const std::string &from)
{
    add_to_integer<int32_t, From>(to, "s32." + from);
    add_to_integer<uint32_t, From>(to, "u32." + from);
    add_to_integer<int64_t, From>(to, "s64." + from);
    add_to_integer<uint64_t, From>(to, "u64." + from);
    std::string same      = from + "." + from;
    to["cvt.rni." + same] = unary<From, From, [](From a) { return std::nearbyint(a); }>;
    to["cvt.rmi." + same] = unary<From, From, [](From a) { return std::floor(a); }>;
    to["cvt.rpi." + same] = unary<From, From, [](From a) { return std::ceil(a); }>;
    to["cvt.rzi." + same] = unary<From, From, [](From a) { return std::trunc(a); }>;
    to["cvt.sat." + same] = unary<From, From, [](From a) { return (a > 0) ? (a < 1 ? a : 1) : 0; }>;
}

void add_special(table &to)
{
    to["div.approx.f32"]     = binary<float, float, float, divide_fast>;
    to["div.full.f32"]       = to["div.rn.f32"];
    to["rcp.approx.f32"]     = to["rcp.rn.f32"];
    to["sqrt.approx.f32"]    = to["sqrt.rn.f32"];
    to["rsqrt.approx.f32"]   = unary<float, float, [](float a) { return (float)(1 / std::sqrt((double)a)); }>;
    to["ex2.approx.f32"]     = unary<float, float, [](float a) { return std::exp2(a); }>;
    to["ex2.approx.ftz.f32"] = unary<float, float, [](float a) { return flush(std::exp2(flush(a))); }>;
    to["lg2.approx.f32"]     = unary<float, float, [](float a) { return std::log2(a); }>;
    to["sin.approx.f32"]     = unary<float, float, [](float a) { return std::sin(a); }>;
    to["cos.approx.f32"]     = unary<float, float, [](float a) { return std::cos(a); }>;
    to["tanh.approx.f32"]    = unary<float, float, [](float a) { return std::tanh(a); }>;
    to["add.rz.f32"]         = binary<float, float, float, [](float a, float b) {
        return rounded<FE_TOWARDZERO, [](float x, float y, float) { return x + y; }>(a, b, 0);
    }>;
    to["fma.rm.f32"]         = ternary<float, float, float, [](float a, float b, float c) {
        return rounded<FE_DOWNWARD, [](float x, float y, float z) { return std::fma(x, y, z); }>(a, b, c);
    }>;
    to["fma.rz.f32"]         = ternary<float, float, float, [](float a, float b, float c) {
        return rounded<FE_TOWARDZERO, [](float x, float y, float z) { return std::fma(x, y, z); }>(a, b, c);
    }>;
    to["prmt.b32"]           = ternary<uint32_t, uint32_t, uint32_t, permute>;
    to["bfi.b32"]            = insert_bits<uint32_t>;
    to["bfi.b64"]            = insert_bits<uint64_t>;
    to["brev.b32"]           = unary<uint32_t, uint32_t, reversed>;
    to["popc.b32"]           = unary<uint32_t, uint32_t, [](uint32_t a) { return (uint32_t)__builtin_popcount(a); }>;
    to["popc.b64"]           = unary<uint32_t, uint64_t, [](uint64_t a) { return (uint32_t)__builtin_popcountll(a); }>;
    to["clz.b32"] = unary<uint32_t, uint32_t, [](uint32_t a) { return a == 0 ? 32u : (uint32_t)__builtin_clz(a); }>;
    to["bfind.shiftamt.u32"] =
        unary<uint32_t, uint32_t, [](uint32_t a) { return a == 0 ? ALL : (uint32_t)__builtin_clz(a); }>;
    to["bfind.u32"] =
        unary<uint32_t, uint32_t, [](uint32_t a) { return a == 0 ? ALL : 31u - (uint32_t)__builtin_clz(a); }>;
    to["shf.l.wrap.b32"]  = ternary<uint32_t, uint32_t, uint32_t, [](uint32_t a, uint32_t b, uint32_t c) {
        return (uint32_t)(((uint64_t)b << 32 | a) << (c & 31u) >> 32);
    }>;
    to["shf.r.wrap.b32"]  = ternary<uint32_t, uint32_t, uint32_t, [](uint32_t a, uint32_t b, uint32_t c) {
        return (uint32_t)(((uint64_t)b << 32 | a) >> (c & 31u));
    }>;
    to["and.pred"]        = logic<[](uint32_t a, uint32_t b) { return a & b; }>;
    to["or.pred"]         = logic<[](uint32_t a, uint32_t b) { return a | b; }>;
    to["xor.pred"]        = logic<[](uint32_t a, uint32_t b) { return a ^ b; }>;
    to["not.pred"]        = logic<[](uint32_t a, uint32_t) { return ~a; }>;
    to["mov.pred"]        = logic<[](uint32_t a, uint32_t) { return a; }>;
    to["cvt.f64.f32"]     = unary<double, float, [](float a) { return (double)a; }>;
    to["cvt.rn.f32.f64"]  = unary<float, double, [](double a) { return (float)a; }>;
    to["cvt.f32.bf16"]    = unary<float, uint16_t, [](uint16_t a) { return std::bit_cast<float>((uint32_t)a << 16); }>;
    to["cvt.rn.bf16.f32"] = unary<uint16_t, float, to_bf16>;
    to["cvt.rn.bf16x2.f32"] =
        binary<uint32_t, float, float, [](float a, float b) { return (uint32_t)to_bf16(a) << 16 | to_bf16(b); }>;
    to["cvt.rn.satfinite.e4m3x2.f32"] = binary<uint16_t, float, float, to_e4m3>;
    to["cvt.rn.satfinite.e5m2x2.f32"] = binary<uint16_t, float, float, to_e5m2>;
    for (const char *name : {"cvta.to.global.u64", "cvta.global.u64"}) {
        to[name] = to["mov.u64"];
    }
    to["cvta.shared.u64"]    = unary<uint64_t, uint64_t, [](uint64_t a) { return a | SHARED_BASE; }>;
    to["cvta.to.shared.u64"] = unary<uint64_t, uint64_t, [](uint64_t a) { return a & ~SHARED_BASE; }>;
    to["cvta.local.u64"]     = unary<uint64_t, uint64_t, [](uint64_t a) { return a | LOCAL_BASE; }>;
    to["cvta.to.local.u64"]  = unary<uint64_t, uint64_t, [](uint64_t a) { return a & ~LOCAL_BASE; }>;
}

table make_table()
{
    table made;
    add_integer<int16_t>(made, "s16");
    add_integer<uint16_t>(made, "u16");
    add_integer<int32_t>(made, "s32");
    add_integer<uint32_t>(made, "u32");
    add_integer<int64_t>(made, "s64");
    add_integer<uint64_t>(made, "u64");
    add_bits<uint16_t>(made, "b16");
    add_bits<uint32_t>(made, "b32");
    add_bits<uint64_t>(made, "b64");
    add_float<float>(made, "f32");
    add_float<double>(made, "f64");
    add_integers_from<int8_t>(made, "s8");
    add_integers_from<uint8_t>(made, "u8");
    add_integers_from<int16_t>(made, "s16");
    add_integers_from<uint16_t>(made, "u16");
    add_integers_from<int32_t>(made, "s32");
    add_integers_from<uint32_t>(made, "u32");
    add_integers_from<int64_t>(made, "s64");
    add_integers_from<uint64_t>(made, "u64");
    add_float_from<float>(made, "f32");
    add_float_from<double>(made, "f64");
    add_special(made);
    return made;
}
}    // namespace

handler find_arithmetic(const std::string &opcode)
{
    static const table all   = make_table();
    auto               found = all.find(opcode);
    return found == all.end() ? NULL : found->second;
}
}    // namespace ptx
