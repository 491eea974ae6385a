/*
 * layout_request_internal.h - the struct that layout_schema reads a layout into. Private to layout_request.c and layout_schema.c.
 */
#ifndef MSIM_MODEL_SPEC_LAYOUT_REQUEST_INTERNAL_H
#define MSIM_MODEL_SPEC_LAYOUT_REQUEST_INTERNAL_H

#include "model/spec/layout_dimensions.h"
#include "model/spec/offload.h"
#include "model/spec/recompute.h"

/* The key of a layout whose other dimensions are searched, and the word that sets it: auto,pp=2. */
#define LAYOUT_AUTO "auto"

/* The values of a layout as the schema reads them; the request keeps only the text. */
#define MEMBER_NUMBER(member)    int member;
#define MEMBER_FLAG(member)      int member;
#define MEMBER_CP_COMM(member)   int member;
#define MEMBER_SCHEDULE(member)  int member;
#define MEMBER_RECOMPUTE(member) struct recompute member;
#define MEMBER_OFFLOAD(member)   struct offload member;
struct layout_keys {
#define X(id, type, member, ...) MEMBER_##type(member)
    LAYOUT_DIMENSIONS(X)
#undef X
    int search;
};

#endif
