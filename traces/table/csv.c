/* csv.c - parses CSV. */
#include "traces/table/csv.h"

#include <csv.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/file.h"
#include "model/base/memory.h"
#include "model/base/utf8.h"

enum { MAX_COLUMNS = 4096, PARSER_BLOCK = 1 << 16 };

struct csv_record {
    size_t offset; /* of its first byte in the text */
    int line;      /* 1-based */
};

/* --- parsing ------------------------------------------------------------------------------------------------------- */

/* One pass over the text, fed line by line so that every record's first line is known. */
struct csv_builder {
    struct csv_table table;
    size_t records_capacity, cells_capacity, n_cells; /* cells of the rows, without the header */
    size_t n_pool;
    struct csv_record at; /* the record being read */
    int first_line;       /* the number of the first line */
    bool in_record;
    int fields; /* of that record so far */
    bool header_done;
    const struct watch *watch;
    struct diags *diags;
};

static struct place builder_place(const struct csv_builder *builder, int column)
{
    return (struct place){.file = builder->table.name, .line = builder->at.line, .column = column};
}

/* The pool never moves: every cell's closing NUL stands for the separator, line end or end of text that closed it there. */
static const char *pool_keep(struct csv_builder *builder, const char *bytes, size_t n)
{
    char *kept = builder->table.pool + builder->n_pool;
    memcpy(kept, bytes, n);
    kept[n] = '\0';
    builder->n_pool += n + 1;
    return kept;
}

static void on_field(void *bytes, size_t n, void *data)
{
    struct csv_builder *builder = data;
    struct csv_table *table = &builder->table;
    int column = builder->fields++;
    if (!builder->header_done) {
        if (column >= MAX_COLUMNS)
            return;
        table->header[column] = pool_keep(builder, n ? bytes : "", n);
    } else if (column < table->n_columns) {
        table->cells = memory_grow(table->cells, &builder->cells_capacity, builder->n_cells + 1, sizeof *table->cells);
        table->cells[builder->n_cells++] = pool_keep(builder, n ? bytes : "", n);
    }
}

static void header_close(struct csv_builder *builder)
{
    if (builder->fields > MAX_COLUMNS)
        diag_error(builder->diags, builder_place(builder, 0), "the header has %d columns, more than %d; is this a table?",
                   builder->fields, MAX_COLUMNS);
    builder->table.n_columns = builder->fields < MAX_COLUMNS ? builder->fields : MAX_COLUMNS;
    builder->header_done = true;
}

static void row_close(struct csv_builder *builder)
{
    struct csv_table *table = &builder->table;
    if (builder->fields != table->n_columns)
        diag_error(builder->diags, builder_place(builder, 0), "this row has %d cell%s where the header has %d", builder->fields,
                   builder->fields == 1 ? "" : "s", table->n_columns);
    for (int column = builder->fields; column < table->n_columns; column++) {
        table->cells = memory_grow(table->cells, &builder->cells_capacity, builder->n_cells + 1, sizeof *table->cells);
        table->cells[builder->n_cells++] = "";
    }
    table->n_rows++;
}

static void on_record(int terminator, void *data)
{
    (void)terminator;
    struct csv_builder *builder = data;
    struct csv_table *table = &builder->table;
    size_t n_records = builder->header_done ? table->n_rows + 1 : 0;
    table->records = memory_grow(table->records, &builder->records_capacity, n_records + 1, sizeof *table->records);
    table->records[n_records] = builder->at;
    if (builder->header_done)
        row_close(builder);
    else
        header_close(builder);
    builder->fields = 0;
    builder->in_record = false;
}

/* Bytes of the line at `text`, its end (LF, CRLF or CR) included. */
static size_t line_length(const char *text, size_t n)
{
    const char *lf = memchr(text, '\n', n);
    size_t length = lf ? (size_t)(lf - text) + 1 : n;
    const char *cr = memchr(text, '\r', length);
    if (cr && !(lf && cr + 1 == lf))
        length = (size_t)(cr - text) + 1;
    return length;
}

/* Nothing but blanks and separators: spreadsheets write empty rows so. */
static bool is_blank(const char *text, size_t n, const char *separators)
{
    for (size_t i = 0; i < n; i++)
        if (text[i] != ' ' && text[i] != '\t' && text[i] != '\r' && text[i] != '\n' && !strchr(separators, text[i]))
            return false;
    return true;
}

static void parser_open(struct csv_parser *parser, char separator)
{
    csv_init(parser, CSV_STRICT | CSV_STRICT_FINI); /* cannot fail: the parser is not NULL */
    csv_set_blk_size(parser, PARSER_BLOCK);         /* a quoted cell that never ends grows to the whole text */
    csv_set_delim(parser, (unsigned char)separator);
}

/* A line that no cell opened and that begins with # is a comment. */
static bool is_comment(const char *text, size_t n)
{
    return n > 0 && text[0] == '#';
}

/* What separates the names of the header: semicolons, tabs or bars where it has no comma. */
static char separator_of(const char *header, size_t n)
{
    size_t semicolons = 0, tabs = 0, bars = 0;
    bool quoted = false;
    for (size_t i = 0; i < n; i++) {
        quoted ^= header[i] == '"';
        if (quoted)
            continue;
        if (header[i] == ',')
            return ',';
        semicolons += header[i] == ';';
        tabs += header[i] == '\t';
        bars += header[i] == '|';
    }
    return semicolons ? ';' : tabs ? '\t' : bars ? '|' : ',';
}

/* The column, in characters, of byte `at` in the line that starts at `line`. Continuation bytes of UTF-8 do not count. */
static int character_column(const char *line, const char *at)
{
    int column = 1;
    for (const char *p = line; p < at; p++)
        if (((unsigned char)*p & 0xC0) != 0x80)
            column++;
    return column;
}

struct field_search {
    int fields;
};

static void count_field(void *bytes, size_t n, void *data)
{
    (void)bytes, (void)n;
    ((struct field_search *)data)->fields++;
}

static void ignore_record(int terminator, void *data)
{
    (void)terminator, (void)data;
}

/* Where field `column` of a record begins, found by libcsv itself, fed byte by byte: a field begins behind the separator that
 * ends the one before it. */
static size_t field_offset(const struct csv_table *table, size_t offset, int column)
{
    const char *text = table->text;
    const size_t n_text = table->n_text;
    struct csv_parser parser;
    struct field_search search = {0};
    parser_open(&parser, table->separator);
    while (search.fields < column && offset < n_text) {
        if (csv_parse(&parser, text + offset, 1, count_field, ignore_record, &search) != 1)
            break;
        offset++;
    }
    csv_free(&parser);
    while (offset < n_text && (text[offset] == ' ' || text[offset] == '\t') && text[offset] != table->separator)
        offset++;
    return offset;
}

static struct place place_in_record(const struct csv_table *table, struct csv_record record, int column)
{
    const char *name = table->name, *text = table->text;
    const size_t n_text = table->n_text;
    if (column < 0)
        return (struct place){.file = name, .line = record.line};
    size_t wanted = field_offset(table, record.offset, column);
    size_t line_start = record.offset;
    int line = record.line;
    for (;;) {
        size_t next = line_start + line_length(text + line_start, n_text - line_start);
        if (wanted < next || next >= n_text)
            break;
        line_start = next;
        line++;
    }
    return (struct place){.file = name, .line = line, .column = character_column(text + line_start, text + wanted)};
}

/* libcsv stopped: inside the field that has been open since the last one was closed. */
static void report_syntax(struct csv_builder *builder, bool at_end)
{
    struct csv_table *table = &builder->table;
    struct place at = place_in_record(table, builder->at, builder->fields);
    if (at_end)
        diag_error(builder->diags, at, "the quote opened here is never closed");
    else
        diag_error(builder->diags, at, "a quote inside this cell; quote the whole cell and double the quotes in it");
}

/* Where the first line begins, behind a byte-order mark. */
static size_t first_line(const struct csv_table *table)
{
    return table->n_text >= 3 && memcmp(table->text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
}

/* Blank lines, rows of empty cells and comments stand between records. */
static bool is_between(const char *text, size_t n, const char *separators)
{
    return is_blank(text, n, separators) || is_comment(text, n);
}

static char find_separator(const struct csv_table *table)
{
    size_t n;
    for (size_t offset = first_line(table); offset < table->n_text; offset += n) {
        n = line_length(table->text + offset, table->n_text - offset);
        if (!is_between(table->text + offset, n, ",;|"))
            return separator_of(table->text + offset, n);
    }
    return ',';
}

static void read_records(struct csv_builder *builder, struct csv_parser *parser)
{
    const struct csv_table *table = &builder->table;
    const char separators[] = {table->separator, '\0'};
    size_t offset = first_line(table);
    size_t told = 0;
    for (int line = builder->first_line; offset < table->n_text; line++) {
        size_t n = line_length(table->text + offset, table->n_text - offset);
        bool between = !builder->in_record && is_between(table->text + offset, n, separators);
        if (!between) {
            if (!builder->in_record)
                builder->at = (struct csv_record){.offset = offset, .line = line};
            builder->in_record = true;
            if (csv_parse(parser, table->text + offset, n, on_field, on_record, builder) != n) {
                report_syntax(builder, false);
                return;
            }
        }
        offset += n;
        if (offset - told >= WATCH_BYTES || offset == table->n_text) {
            watch_tell(builder->watch, (double)offset, (double)table->n_text);
            told = offset;
        }
    }
    if (csv_fini(parser, on_field, on_record, builder) != 0)
        report_syntax(builder, true);
}

/* The first byte that is no text: a control character other than tab and line ends, or broken UTF-8. n_text when all is text. */
static size_t first_binary_byte(const char *text, size_t n_text)
{
    size_t i = 0, length;
    for (; i < n_text; i += length) {
        bool plain = text[i] >= 0x20 && text[i] < 0x7F;
        length = plain ? 1 : utf8_length(text + i, n_text - i);
        if (length == 0)
            break;
    }
    return i;
}

static enum status check_text(const struct csv_table *table, struct diags *diags)
{
    size_t bad = first_binary_byte(table->text, table->n_text);
    if (bad == table->n_text)
        return STATUS_OK;
    if (utf16_begins(table->text, table->n_text)) {
        diag_error(diags, (struct place){.file = table->name, .line = 1, .column = 1}, "is UTF-16 text; save it as UTF-8");
        return STATUS_BAD_INPUT;
    }
    size_t start = 0;
    int line = 1;
    for (;;) {
        size_t n = line_length(table->text + start, table->n_text - start);
        if (bad < start + n)
            break;
        start += n;
        line++;
    }
    struct place at = {.file = table->name, .line = line, .column = character_column(table->text + start, table->text + bad)};
    diag_error(diags, at, "byte 0x%02X is not UTF-8 text; is this a CSV table?", (unsigned char)table->text[bad]);
    return STATUS_BAD_INPUT;
}

static void check_header(const struct csv_table *table, struct diags *diags)
{
    for (int i = 0; i < table->n_columns; i++)
        for (int j = 0; j < i; j++)
            if (table->header[i][0] && strcmp(table->header[i], table->header[j]) == 0) {
                diag_error(diags, csv_header_place(table, i), "column '%.40s' is there twice", table->header[i]);
                break;
            }
}

/* Takes over `text`. */
static enum status table_from_text(const char *name, char *text, size_t n_text, int first_line, const struct watch *watch,
                                   struct csv_table *table, struct diags *diags)
{
    struct csv_builder builder = {.first_line = first_line, .watch = watch, .diags = diags};
    struct csv_table *read = &builder.table;
    size_t errors_before = diags->n_errors;
    read->name = memory_copy_text(name);
    read->text = text;
    read->n_text = n_text;
    read->open_end = n_text > 0 && text[n_text - 1] != '\n' && text[n_text - 1] != '\r';
    if (check_text(read, diags) == STATUS_OK) {
        struct csv_parser parser;
        read->separator = find_separator(read);
        parser_open(&parser, read->separator);
        read->pool = memory_new(n_text + 2, 1);
        read->header = memory_new(MAX_COLUMNS, sizeof *read->header);
        read_records(&builder, &parser);
        csv_free(&parser);
        if (!builder.header_done && diags->n_errors == errors_before)
            diag_error(diags, (struct place){.file = name}, "is empty; a table begins with a line of column names");
        check_header(read, diags);
    }
    if (diags->n_errors > errors_before) {
        csv_table_free(read);
        return STATUS_BAD_INPUT;
    }
    *table = *read;
    return STATUS_OK;
}

enum status csv_table_read(const char *path, struct csv_table *table, struct diags *diags)
{
    char *text;
    size_t n_text;
    enum status status = file_read(path, FILE_TEXT_MAX, &text, &n_text, diags);
    return status == STATUS_OK ? table_from_text(path, text, n_text, 1, NULL, table, diags) : status;
}

enum status csv_table_parse(const char *name, const char *bytes, size_t n_bytes, struct csv_table *table, struct diags *diags)
{
    return csv_table_parse_watched(name, bytes, n_bytes, NULL, table, diags);
}

enum status csv_table_parse_watched(const char *name, const char *bytes, size_t n_bytes, const struct watch *watch,
                                    struct csv_table *table, struct diags *diags)
{
    char *text = memory_new(n_bytes + 1, 1);
    if (n_bytes)
        memcpy(text, bytes, n_bytes);
    return table_from_text(name, text, n_bytes, 1, watch, table, diags);
}

enum status csv_table_parse_headed(const char *name, const char *header, const char *bytes, size_t n_bytes,
                                   struct csv_table *table, struct diags *diags)
{
    size_t n_header = header ? strlen(header) : 0;
    char *text = memory_new(n_header + n_bytes + 1, 1);
    if (n_header)
        memcpy(text, header, n_header);
    if (n_bytes)
        memcpy(text + n_header, bytes, n_bytes);
    return table_from_text(name, text, n_header + n_bytes, header ? 0 : 1, NULL, table, diags);
}

void csv_table_free(struct csv_table *table)
{
    free(table->name);
    free(table->header);
    free(table->cells);
    free(table->text);
    free(table->pool);
    free(table->records);
    *table = (struct csv_table){0};
}

/* --- places -------------------------------------------------------------------------------------------------------- */

struct place csv_place(const struct csv_table *table, size_t row, int column)
{
    return place_in_record(table, table->records[row + 1], column);
}

struct place csv_header_place(const struct csv_table *table, int column)
{
    return place_in_record(table, table->records[0], column);
}
