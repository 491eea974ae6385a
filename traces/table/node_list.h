/*
 * node_list.h - lists of nodes as Slurm writes them.
 *
 *     gpu[001-003,007]          gpu001 gpu002 gpu003 gpu007
 *     rack[1-2]n[01-04]         rack1n01 rack1n02 ... rack2n04
 *     n17,n18                   also with blanks, semicolons, plus signs or bars between the names
 */
#ifndef MSIM_TRACES_TABLE_NODE_LIST_H
#define MSIM_TRACES_TABLE_NODE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NODE_NAME_SIZE = 256, NODE_LIST_MOST = 10000000 };

/* How many nodes the text names: 0 for "None assigned", "(null)", "" and what is no list; at most NODE_LIST_MOST. */
int64_t node_list_count(const char *text);
/* The name of node `index`, 0-based, in [0, node_list_count); false: there is none, or its name is too long. */
bool node_list_name(const char *text, int64_t index, char name[NODE_NAME_SIZE]);

#endif
