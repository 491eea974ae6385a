/* packets_usual.h - what the suite of packets and their benchmark send by. */
#ifndef MSIM_TESTS_SIM_FABRIC_PACKETS_USUAL_H
#define MSIM_TESTS_SIM_FABRIC_PACKETS_USUAL_H

#include "sim/fabric/packets.h"

/* Packets of so many bytes, DCQCN's published timers; what was stopped goes on two packets below the threshold that stopped it.
 */
struct packets_parameters packets_usual(double packet_bytes, enum congestion congestion);

#endif
