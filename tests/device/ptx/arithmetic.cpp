// SPDX-License-Identifier: MIT
// Emulates arithmetic instructions of PTX, lane by lane. Approximate instructions such as ex2.approx return the nearest
// number.
#include "ptx.h"

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>
#include <tuple>
#include <type_traits>

namespace ptx
{
namespace
{
// A source operand of all lanes: a register, or the bits of a predicate.
template <typename T> struct source {
    const T *at;
    source(warp &w, uint32_t unit) : at(w.lanes<T>(unit))
    {
    }
    T operator[](int lane) const
    {
        return at[lane];
    }
};
template <> struct source<bool> {
    uint32_t bits;
    source(warp &w, uint32_t number) : bits(w.predicates[number])
    {
    }
    bool operator[](int lane) const
    {
        return bits >> lane & 1u;
    }
};

template <auto f, typename To, typename... From, size_t... i>
void run_lanes(warp &w, const instruction &its, std::index_sequence<i...>)
{
    const std::tuple<source<From>...> from{source<From>(w, its.operands[1 + i])...};
    if constexpr (std::is_same<To, bool>::value) {
        uint32_t result = 0;
        for (int l = 0; l < LANES; l++) {
            result |= (uint32_t)f(std::get<i>(from)[l]...) << l;
        }
        w.put_predicate(its.operands[0], result);
    } else {
        To result[LANES];
        for (int l = 0; l < LANES; l++) {
            result[l] = f(std::get<i>(from)[l]...);
        }
        w.put(its.operands[0], result);
    }
}

// Makes an instruction that applies a function to its operands. The parameters of the function define their types.
template <auto f, typename To, typename... From> constexpr handler make_handler(To (*)(From...))
{
    return
        [](warp &w, const instruction &its) { run_lanes<f, To, From...>(w, its, std::index_sequence_for<From...>()); };
}
template <auto f> constexpr handler lanewise = make_handler<f>(+f);

template <auto f> void logic(warp &w, const instruction &its)
{
    w.put_predicate(its.operands[0], f(w.predicates[its.operands[1]], w.predicates[its.operands[2]]));
}

// Computes an fma with directed rounding. volatile keeps the operations between the two calls of fesetround.
template <int direction> __attribute__((optimize("rounding-math"))) float fma_rounded(float a, float b, float c)
{
    volatile float x = a, y = b, z = c;
    std::fesetround(direction);
    volatile float result = std::fma(x, y, z);
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
    return b == 0 ? (T)-1 : std::is_signed<T>::value && b == (T)-1 ? (T)(0 - (uint64_t)a) : (T)(a / b);
}
template <typename T> T remainder(T a, T b)
{
    return b == 0 ? a : std::is_signed<T>::value && b == (T)-1 ? 0 : (T)(a % b);
}
template <typename T> T shift_left(T a, uint32_t by)
{
    return by < 8 * sizeof(T) ? (T)(a << by) : 0;
}
template <typename T> T shift_right(T a, uint32_t by)
{
    return (T)(by < 8 * sizeof(T) ? a >> by : a < 0 ? -1 : 0);
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

uint32_t reverse(uint32_t a)
{
    uint32_t result = 0;
    for (int i = 0; i < 32; i++) {
        result |= (a >> i & 1u) << (31 - i);
    }
    return result;
}

// Converts to an integer, with saturation. NaN becomes 0.
template <typename To, typename From> To integer(From a)
{
    From lowest = (From)std::numeric_limits<To>::min(), highest = (From)std::numeric_limits<To>::max();
    return a != a         ? 0
           : a <= lowest  ? std::numeric_limits<To>::min()
           : a >= highest ? std::numeric_limits<To>::max()
                          : (To)a;
}

uint16_t to_bf16(float a)
{
    uint32_t word = std::bit_cast<uint32_t>(a);
    return a != a ? 0x7fff : (uint16_t)((word + 0x7fffu + (word >> 16 & 1u)) >> 16);
}

// Converts to FP8 with this number of mantissa bits, rounded to nearest even, with saturation.
template <int mantissa, int bias, int largest> uint8_t to_fp8(float a)
{
    float    size     = std::min(std::fabs(a), 0x1p30f);
    uint32_t exponent = std::max(std::bit_cast<uint32_t>(size) >> 23, 128u - bias);    // biased, as in a float
    float    units    = std::nearbyint(size * std::bit_cast<float>((254u + mantissa - exponent) << 23));
    int      code     = (int)units + ((int)exponent - (128 - bias)) * (1 << mantissa);
    return a != a ? 0x7f : (uint8_t)((std::signbit(a) ? 0x80 : 0) | std::min(code, largest));
}
template <int mantissa, int bias, int largest> uint16_t to_fp8_pair(float high, float low)
{
    return (uint16_t)(to_fp8<mantissa, bias, largest>(high) << 8 | to_fp8<mantissa, bias, largest>(low));
}

// Returns the name of a type in PTX.
template <typename T> std::string name_of()
{
    char sign = std::is_floating_point<T>::value ? 'f' : std::is_signed<T>::value ? 's' : 'u';
    return std::string(".") + sign + std::to_string(8 * sizeof(T));
}
template <typename... T, typename F> void for_types(F call)
{
    (call.template operator()<T>(), ...);
}
template <typename F> void for_integers(F call)
{
    for_types<int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t, uint64_t>(call);
}

template <typename T> void add_moves(table &to, const std::string &type)
{
    to["mov" + type]     = lanewise<[](T a) -> T { return a; }>;
    to["selp" + type]    = lanewise<[](T a, T b, bool chosen) -> T { return chosen ? a : b; }>;
    to["setp.eq" + type] = lanewise<[](T a, T b) -> bool { return a == b; }>;
    to["setp.ne" + type] = lanewise<[](T a, T b) -> bool { return a != b && a == a && b == b; }>;
}

template <typename T> void add_numbers(table &to, const std::string &type)
{
    typedef std::conditional_t<std::is_unsigned<T>::value, int64_t, T> wide;
    add_moves<T>(to, type);
    to["add" + type]     = lanewise<[](T a, T b) -> T { return a + b; }>;
    to["sub" + type]     = lanewise<[](T a, T b) -> T { return a - b; }>;
    to["min" + type]     = lanewise<minimum<T>>;
    to["max" + type]     = lanewise<maximum<T>>;
    to["neg" + type]     = lanewise<[](T a) -> T { return -a; }>;
    to["abs" + type]     = lanewise<[](T a) -> T { return std::abs((wide)a); }>;
    to["setp.lt" + type] = lanewise<[](T a, T b) -> bool { return a < b; }>;
    to["setp.le" + type] = lanewise<[](T a, T b) -> bool { return a <= b; }>;
    to["setp.gt" + type] = lanewise<[](T a, T b) -> bool { return (a > b); }>;
    to["setp.ge" + type] = lanewise<[](T a, T b) -> bool { return a >= b; }>;
}

template <typename T, typename wide> void add_integer(table &to)
{
    const std::string type = name_of<T>();
    add_numbers<T>(to, type);
    to["div" + type]    = lanewise<quotient<T>>;
    to["rem" + type]    = lanewise<remainder<T>>;
    to["shr" + type]    = lanewise<shift_right<T>>;
    to["mul.lo" + type] = lanewise<[](T a, T b) -> T { return (T)((uint64_t)a * (uint64_t)b); }>;
    to["mul.hi" + type] = lanewise<[](T a, T b) -> T { return (T)((wide)a * (wide)b >> 8 * sizeof(T)); }>;
    to["mad.lo" + type] = lanewise<[](T a, T b, T c) -> T { return (T)((uint64_t)a * (uint64_t)b + (uint64_t)c); }>;
    if constexpr (sizeof(T) < 8) {
        to["mul.wide" + type] = lanewise<[](T a, T b) -> wide { return (wide)a * (wide)b; }>;
        to["mad.wide" + type] = lanewise<[](T a, T b, wide c) -> wide { return (wide)a * (wide)b + c; }>;
    }
}

template <typename T> void add_bits(table &to, const std::string &type)
{
    add_moves<T>(to, type);
    to["and" + type] = lanewise<[](T a, T b) -> T { return a & b; }>;
    to["or" + type]  = lanewise<[](T a, T b) -> T { return a | b; }>;
    to["xor" + type] = lanewise<[](T a, T b) -> T { return a ^ b; }>;
    to["not" + type] = lanewise<[](T a) -> T { return ~a; }>;
    to["shl" + type] = lanewise<shift_left<T>>;
    to["shr" + type] = lanewise<shift_right<T>>;
    to["bfi" + type] = lanewise<insert<T>>;
}

template <typename T> void add_float(table &to)
{
    const std::string type = name_of<T>();
    add_numbers<T>(to, type);
    to["min.NaN" + type]  = lanewise<[](T a, T b) -> T { return a != a || b != b ? (T)NAN : minimum<T>(a, b); }>;
    to["max.NaN" + type]  = lanewise<[](T a, T b) -> T { return a != a || b != b ? (T)NAN : maximum<T>(a, b); }>;
    to["mul" + type]      = lanewise<[](T a, T b) -> T { return a * b; }>;
    to["div.rn" + type]   = lanewise<[](T a, T b) -> T { return a / b; }>;
    to["rcp.rn" + type]   = lanewise<[](T a) -> T { return 1 / a; }>;
    to["sqrt.rn" + type]  = lanewise<[](T a) -> T { return std::sqrt(a); }>;
    to["fma.rn" + type]   = lanewise<[](T a, T b, T c) -> T { return std::fma(a, b, c); }>;
    to["setp.equ" + type] = lanewise<[](T a, T b) -> bool { return !(a < b || a > b); }>;
    to["setp.neu" + type] = lanewise<[](T a, T b) -> bool { return a != b; }>;
    to["setp.ltu" + type] = lanewise<[](T a, T b) -> bool { return !(a >= b); }>;
    to["setp.leu" + type] = lanewise<[](T a, T b) -> bool { return !(a > b); }>;
    to["setp.gtu" + type] = lanewise<[](T a, T b) -> bool { return !(a <= b); }>;
    to["setp.geu" + type] = lanewise<[](T a, T b) -> bool { return !(a < b); }>;
    to["setp.num" + type] = lanewise<[](T a, T b) -> bool { return a == a && b == b; }>;
    to["setp.nan" + type] = lanewise<[](T a, T b) -> bool { return a != a || b != b; }>;
    for (std::string name : {"add", "sub", "mul"}) {
        to[name + ".rn" + type] = to[name + type];
    }
}

template <typename From> void add_conversions_of_integer(table &to)
{
    const std::string from = name_of<From>();
    for_integers(
        [&]<typename To>() { to["cvt" + name_of<To>() + from] = lanewise<[](From a) -> To { return (To)a; }>; });
    to["cvt.rn.f32" + from] = lanewise<[](From a) -> float { return (float)a; }>;
    to["cvt.rn.f64" + from] = lanewise<[](From a) -> double { return (double)a; }>;
}
template <typename From> void add_conversions_of_float(table &to)
{
    const std::string from = name_of<From>(), same = from + from;
    for_types<int32_t, uint32_t, int64_t, uint64_t>([&]<typename To>() {
        const std::string pair = name_of<To>() + from;
        to["cvt.rzi" + pair]   = lanewise<integer<To, From>>;
        to["cvt.rni" + pair]   = lanewise<[](From a) -> To { return integer<To, From>(std::nearbyint(a)); }>;
        to["cvt.rmi" + pair]   = lanewise<[](From a) -> To { return integer<To, From>(std::floor(a)); }>;
        to["cvt.rpi" + pair]   = lanewise<[](From a) -> To { return integer<To, From>(std::ceil(a)); }>;
    });
    to["cvt.rni" + same] = lanewise<[](From a) -> From { return std::nearbyint(a); }>;
    to["cvt.rmi" + same] = lanewise<[](From a) -> From { return std::floor(a); }>;
    to["cvt.rpi" + same] = lanewise<[](From a) -> From { return std::ceil(a); }>;
    to["cvt.rzi" + same] = lanewise<[](From a) -> From { return std::trunc(a); }>;
    to["cvt.sat" + same] = lanewise<[](From a) -> From { return (a > 0) ? (a < 1 ? a : 1) : 0; }>;
}

void add_conversions(table &to)
{
    for_integers([&]<typename From>() { add_conversions_of_integer<From>(to); });
    for_types<float, double>([&]<typename From>() { add_conversions_of_float<From>(to); });
    to["cvt.f64.f32"]     = lanewise<[](float a) -> double { return a; }>;
    to["cvt.rn.f32.f64"]  = lanewise<[](double a) -> float { return (float)a; }>;
    to["cvt.f32.bf16"]    = lanewise<[](uint16_t a) -> float { return std::bit_cast<float>((uint32_t)a << 16); }>;
    to["cvt.rn.bf16.f32"] = lanewise<to_bf16>;
    to["cvt.rn.bf16x2.f32"] =
        lanewise<[](float a, float b) -> uint32_t { return (uint32_t)to_bf16(a) << 16 | to_bf16(b); }>;
    to["cvt.rn.satfinite.e4m3x2.f32"] = lanewise<to_fp8_pair<3, 7, 0x7e>>;
    to["cvt.rn.satfinite.e5m2x2.f32"] = lanewise<to_fp8_pair<2, 15, 0x7b>>;
    to["cvta.to.global.u64"] = to["cvta.global.u64"] = to["mov.u64"];
    to["cvta.shared.u64"]                            = lanewise<[](uint64_t a) -> uint64_t { return a | SHARED_BASE; }>;
    to["cvta.to.shared.u64"] = lanewise<[](uint64_t a) -> uint64_t { return a & ~SHARED_BASE; }>;
    to["cvta.local.u64"]     = lanewise<[](uint64_t a) -> uint64_t { return a | LOCAL_BASE; }>;
    to["cvta.to.local.u64"]  = lanewise<[](uint64_t a) -> uint64_t { return a & ~LOCAL_BASE; }>;
}

void add_special(table &to)
{
    to["div.approx.f32"]     = lanewise<divide_fast>;
    to["div.full.f32"]       = to["div.rn.f32"];
    to["rcp.approx.f32"]     = to["rcp.rn.f32"];
    to["sqrt.approx.f32"]    = to["sqrt.rn.f32"];
    to["rsqrt.approx.f32"]   = lanewise<[](float a) -> float { return (float)(1 / std::sqrt((double)a)); }>;
    to["ex2.approx.f32"]     = lanewise<[](float a) -> float { return std::exp2(a); }>;
    to["ex2.approx.ftz.f32"] = lanewise<[](float a) -> float { return flush(std::exp2(flush(a))); }>;
    to["lg2.approx.f32"]     = lanewise<[](float a) -> float { return std::log2(a); }>;
    to["sin.approx.f32"]     = lanewise<[](float a) -> float { return std::sin(a); }>;
    to["cos.approx.f32"]     = lanewise<[](float a) -> float { return std::cos(a); }>;
    to["tanh.approx.f32"]    = lanewise<[](float a) -> float { return std::tanh(a); }>;
    to["add.rz.f32"]         = lanewise<[](float a, float b) -> float { return fma_rounded<FE_TOWARDZERO>(a, 1, b); }>;
    to["fma.rm.f32"]         = lanewise<fma_rounded<FE_DOWNWARD>>;
    to["fma.rz.f32"]         = lanewise<fma_rounded<FE_TOWARDZERO>>;
    to["prmt.b32"]           = lanewise<permute>;
    to["brev.b32"]           = lanewise<reverse>;
    to["popc.b32"]           = lanewise<[](uint32_t a) -> uint32_t { return (uint32_t)std::popcount(a); }>;
    to["popc.b64"]           = lanewise<[](uint64_t a) -> uint32_t { return (uint32_t)std::popcount(a); }>;
    to["clz.b32"]            = lanewise<[](uint32_t a) -> uint32_t { return (uint32_t)std::countl_zero(a); }>;
    to["bfind.shiftamt.u32"] =
        lanewise<[](uint32_t a) -> uint32_t { return a == 0 ? ALL : (uint32_t)std::countl_zero(a); }>;
    to["bfind.u32"]      = lanewise<[](uint32_t a) -> uint32_t { return 31u - (uint32_t)std::countl_zero(a); }>;
    to["shf.l.wrap.b32"] = lanewise<[](uint32_t a, uint32_t b, uint32_t c) -> uint32_t {
        return (uint32_t)(((uint64_t)b << 32 | a) << (c & 31u) >> 32);
    }>;
    to["shf.r.wrap.b32"] = lanewise<[](uint32_t a, uint32_t b, uint32_t c) -> uint32_t {
        return (uint32_t)(((uint64_t)b << 32 | a) >> (c & 31u));
    }>;
    to["and.pred"]       = logic<[](uint32_t a, uint32_t b) { return a & b; }>;
    to["or.pred"]        = logic<[](uint32_t a, uint32_t b) { return a | b; }>;
    to["xor.pred"]       = logic<[](uint32_t a, uint32_t b) { return a ^ b; }>;
    to["not.pred"]       = lanewise<[](bool a) -> bool { return !a; }>;
    to["mov.pred"]       = lanewise<[](bool a) -> bool { return a; }>;
}
}    // namespace

void add_arithmetic(table &to)
{
    add_integer<int16_t, int32_t>(to);
    add_integer<uint16_t, uint32_t>(to);
    add_integer<int32_t, int64_t>(to);
    add_integer<uint32_t, uint64_t>(to);
    add_integer<int64_t, __int128>(to);
    add_integer<uint64_t, unsigned __int128>(to);
    add_bits<uint16_t>(to, ".b16");
    add_bits<uint32_t>(to, ".b32");
    add_bits<uint64_t>(to, ".b64");
    add_float<float>(to);
    add_float<double>(to);
    add_conversions(to);
    add_special(to);
}
}    // namespace ptx
