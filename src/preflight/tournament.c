// SPDX-License-Identifier: MIT
// Round-robin by the circle method. In round r, two players meet if their numbers add up to r modulo an odd number of
// players. With an even number, the last player takes the free slot.
#include "gswbench/preflight.h"

int64_t preflight_rounds(int64_t players)
{
    return players % 2 == 0 ? players - 1 : players;
}

int64_t preflight_partner(int64_t players, int64_t player, int64_t round)
{
    int64_t circle = preflight_rounds(players);
    bool    is_odd = circle == players;
    if (player == circle) {    // the last of an even number: its partner p satisfies 2 p = r
        return round * ((circle + 1) / 2) % circle;
    }
    int64_t partner = ((round - player) % circle + circle) % circle;
    if (partner != player) {
        return partner;
    }
    return is_odd ? -1 : circle;
}
