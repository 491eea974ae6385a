/*
 * framework_more.h - functions for keys that single rows of a framework's table cannot describe.
 *
 * Example: a table with `more: litgpt` lets the reader call more_litgpt() after its rows. It translates LitGPT's number of
 * devices and nodes, which determine the sharding only together.
 */
#ifndef MSIM_TRACES_LAUNCH_FRAMEWORKS_FRAMEWORK_MORE_H
#define MSIM_TRACES_LAUNCH_FRAMEWORKS_FRAMEWORK_MORE_H

#include "traces/launch/frameworks/framework_table.h"

framework_more more_axolotl;
framework_more more_colossal_ai;
framework_more more_litgpt;
framework_more more_llm_foundry;
framework_more more_maxtext;
framework_more more_nanotron;
framework_more more_olmo;
framework_more more_olmo_core;
framework_more more_torchtitan;
framework_more more_training_arguments;

#endif
