// SPDX-License-Identifier: MIT
// A tournament by the circle method: in round r those players meet whose numbers add up to r, modulo an odd number of
// players; with an even number the last one meets who would meet himself.
#include "gswbench/preflight.h"

int64_t preflight_rounds(int64_t players)
{
    return players % 2 == 0 ? players - 1 : players;
}

int64_t preflight_partner(int64_t players, int64_t player, int64_t round)
{
    int64_t circle = preflight_rounds(players);
    bool    is_odd = circle == players;
    if (player == circle) {    // the last of an even number: twice whom he meets is r
        return round * ((circle + 1) / 2) % circle;
    }
    int64_t partner = ((round - player) % circle + circle) % circle;
    if (partner != player) {
        return partner;
    }
    return is_odd ? -1 : circle;
}
