// SPDX-License-Identifier: MIT
// Parses INI text into validated assignments, and the conditions of [when ...] sections (rank count, precision, gpu,
// variant). Collects all errors.
#include "internal.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "gswbench/number.h"

static const char blanks[] = " \t\r\f\v";

// Adds an error. Makes the whole text printable, because callers quote the user's input.
void document_error(struct document *document, const char *format, ...)
{
    if (document->error_count++ >= DOCUMENT_ERRORS_SHOWN) {
        return;
    }
    char    message[2048], shown[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    text_printable(shown, sizeof(shown), message);
    text_append(document->errors, "E-CONFIG %s\n", shown);
}

void document_free(struct document *document)
{
    free(document->assignments);
    arena_free(&document->arena);
}

const char *document_hint(struct document *document, const char *before, const char *suggestion, const char *after)
{
    return suggestion == NULL ? ""
                              : arena_format(&document->arena, " (did you mean %s%s%s?)", before, suggestion, after);
}

// Returns the end of the error for an unknown section or key: the closest name, if any, or where to find all names.
static const char *hint_known(struct document *document, const char *before, const char *suggestion, const char *after)
{
    return suggestion == NULL ? " (gswbench options lists all)" : document_hint(document, before, suggestion, after);
}

// Returns a printable copy of a text, which the arena holds.
static const char *show(struct document *document, const char *text)
{
    size_t bytes = strlen(text) + 1;
    char  *shown = arena_allocate(&document->arena, bytes);
    text_printable(shown, bytes, text);
    return shown;
}

bool option_names_file(const struct option *option)
{
    return option == option_find(model_options, "preset") || option == option_find(hardware_options, "profile") ||
           option == option_find(software_options, "profile");
}

// Returns the path that an option's value means. Relative paths start from the folder of the configuration file; in
// overrides, from the current directory.
static const char *resolve_path(struct document *document, const struct assignment *assignment, const char *value)
{
    const char *slash = document->file == NULL ? NULL : strrchr(document->file, '/');
    if (assignment->origin == ORIGIN_OVERRIDE || !option_names_file(assignment->option) || value[0] == '/' ||
        strchr(value, '/') == NULL || slash == NULL) {
        return value;
    }
    value += strncmp(value, "./", 2) == 0 ? 2 : 0;
    return arena_format(&document->arena, "%.*s%s", (int)(slash + 1 - document->file), document->file, value);
}

// Returns the name of the installed hardware profile for a name that people write: "H100" is h100-sxm.
static const char *canonical_device(struct document *document, const char *value)
{
    static const char *const aliases[][2] = {{"h100", "h100-sxm"}, {"h100-80gb", "h100-sxm"}, {"a100", "a100-80gb"}};
    for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++) {
        if (strcasecmp(value, aliases[i][0]) == 0) {
            return aliases[i][1];
        }
    }
    const char **names = config_names(&document->arena, arena_format(&document->arena, "%s/hardware", config_folder()));
    for (; names != NULL && *names != NULL; names++) {
        if (strcasecmp(value, *names) == 0) {
            return *names;
        }
    }
    return value;
}

// Returns why an option cannot be set here, or NULL. A preset file cannot name another one, except that a software
// profile inherits from one. A [when ...] section cannot set the model's preset, the precision or the variant.
static const char *forbidden(const struct document *document, const struct assignment *assignment)
{
    bool names_file = option_names_file(assignment->option);
    bool is_preset  = assignment->option == option_find(model_options, "preset");
    bool is_term    = assignment->option == option_find(precision_options, "compute") ||
                   assignment->option == option_find(published_options, "variant");
    if (assignment->origin == ORIGIN_WHEN && (is_preset || is_term)) {
        return "cannot be set in a [when ...] section";
    }
    bool inherits = assignment->option == option_find(software_options, "profile");
    return document->only != NULL && names_file && !inherits ? "cannot be set in a preset file" : NULL;
}

static int earlier_line(const struct document *document, const struct assignment *wanted)
{
    for (size_t i = document->count; i-- > 0;) {
        const struct assignment *other = &document->assignments[i];
        if (other->section == wanted->section && other->option == wanted->option && other->origin == wanted->origin &&
            other->condition == wanted->condition) {
            return other->line;
        }
    }
    return 0;
}

// Validates an assignment and adds it to the document. assignment.place: start of error messages, before the value.
static void add(struct document *document, struct assignment assignment, const char *value)
{
    const char *reason  = forbidden(document, &assignment);
    int         earlier = assignment.origin == ORIGIN_OVERRIDE ? 0 : earlier_line(document, &assignment);
    if (reason != NULL) {
        document_error(document, "%s%s: %s", assignment.place, value, reason);
        return;
    }
    if (earlier != 0) {
        document_error(document, "%s%s: already set in line %d", assignment.place, value, earlier);
        return;
    }
    bool is_device = assignment.option == option_find(hardware_options, "profile");
    value          = resolve_path(document, &assignment, is_device ? canonical_device(document, value) : value);
    struct config scratch;
    status        result = option_set(assignment.option, (char *)&scratch + assignment.section->offset, value);
    if (failed(&result)) {
        document_error(document, "%s%s", assignment.place, result.text);
        return;
    }
    assignment.value = arena_format(&document->arena, "%s", value);
    LIST_APPEND(document->assignments, document->count, assignment);
}

// Returns the current name of an option that was renamed.
static const char *present_name(const struct config_section *section, const char *key)
{
    static const char *const renamed[][3] = {{"precision", "fp8_recipe", "recipe"}};
    for (size_t i = 0; i < sizeof(renamed) / sizeof(renamed[0]); i++) {
        if (strcmp(section->name, renamed[i][0]) == 0 && strcmp(key, renamed[i][1]) == 0) {
            return renamed[i][2];
        }
    }
    return key;
}

static void resolve(struct document *document, struct assignment assignment, const char *key, const char *value)
{
    assignment.option = option_find(assignment.section->options, present_name(assignment.section, key));
    if (assignment.option == NULL) {
        const char *suggestion = option_suggest(assignment.section->options, key);
        document_error(document, "%s%s: unknown key%s", assignment.place, value,
                       hint_known(document, "\"", suggestion, "\""));
    } else {
        add(document, assignment, value);
    }
}

// Resolves "section.key", as written in [when ...] sections and after --set, and adds the assignment.
static void resolve_dotted(struct document *document, struct assignment assignment, const char *name, const char *value)
{
    const char *dot = strchr(name, '.');
    if (dot == NULL) {
        const char *meant = "";
        for (const struct config_section *section = config_sections; section->name != NULL && *meant == '\0';
             section++) {
            if (option_find(section->options, name) != NULL) {
                meant = arena_format(&document->arena, "%s.%s", section->name, name);
            }
        }
        document_error(document, "%s%s: expected section.key%s", assignment.place, value,
                       document_hint(document, "", *meant != '\0' ? meant : NULL, ""));
        return;
    }
    const char *section = arena_format(&document->arena, "%.*s", (int)(dot - name), name);
    assignment.section  = section_find(section);
    if (assignment.section == NULL) {
        document_error(document, "%s%s: unknown section%s", assignment.place, value,
                       hint_known(document, "\"", section_suggest(section), "\""));
        return;
    }
    resolve(document, assignment, dot + 1, value);
}

static char *trim(struct document *document, const char *start, const char *end)
{
    while (start < end && strchr(blanks, *start) != NULL) {
        start++;
    }
    while (start < end && strchr(blanks, end[-1]) != NULL) {
        end--;
    }
    return arena_format(&document->arena, "%.*s", (int)(end - start), start);
}

// Parses an override: "section.key=value" of --set, or a flag with the option that it sets, "--model
// model.preset=NAME". Errors quote the flag as the user typed it; for --set and --from also the option.
void document_override(struct document *document, const char *text)
{
    size_t      flag   = strncmp(text, "--", 2) == 0 ? strcspn(text, " ") : 0;
    const char *start  = text + flag;
    const char *equals = strchr(start, '=');
    if (equals == NULL) {
        document_error(document, "--set %s: expected section.key=value", text);
        return;
    }
    const char *name     = trim(document, start, equals);
    const char *value    = trim(document, equals + 1, equals + strlen(equals));
    bool        has_name = flag == 0 || strncmp(text, "--from ", flag + 1) == 0;
    const char *place = arena_format(&document->arena, "%.*s %s%s", flag > 0 ? (int)flag : 5, flag > 0 ? text : "--set",
                                     has_name ? show(document, name) : "", has_name ? "=" : "");
    resolve_dotted(document, (struct assignment){.place = place, .origin = ORIGIN_OVERRIDE}, name, value);
}

static void on_key(struct document *document, const char *name, const char *value)
{
    struct assignment assignment = {.section = document->section, .line = document->line, .origin = document->origin};
    assignment.place             = arena_format(&document->arena, "%s:%d: [%s] %s = ", document->path, document->line,
                                                document->header, show(document, name));
    switch (document->lines) {
    case LINES_BEFORE_SECTIONS:
        document_error(document, "%s:%d: %s = %s: key before any [section]", document->path, document->line, name,
                       value);
        document->lines = LINES_SKIPPED;
        break;
    case LINES_SECTION:
        resolve(document, assignment, name, value);
        break;
    case LINES_WHEN:
        assignment.origin    = ORIGIN_WHEN;
        assignment.condition = document->condition_count - 1;
        resolve_dotted(document, assignment, name, value);
        break;
    case LINES_SKIPPED:
        break;
    }
}

// Sets the name of a term in a condition. Fails if the text is empty or the name is already set.
static bool add_name(struct document *document, const char **name, const char *text)
{
    bool is_first = *name == NULL && text[0] != '\0';
    *name         = arena_format(&document->arena, "%s", text);
    return is_first;
}

// Parses "ranks=512", "precision=fp8", "gpu=b200" or "variant=compiled"; each at most once.
static bool add_term(struct document *document, struct condition *condition, const char *term)
{
    int64_t ranks;
    if (strncmp(term, "gpu=", 4) == 0) {
        return add_name(document, &condition->gpu, canonical_device(document, term + 4));
    }
    if (strncmp(term, "variant=", 8) == 0) {
        return add_name(document, &condition->variant, term + 8);
    }
    if (strncmp(term, "ranks=", 6) == 0) {
        if (condition->ranks != 0 || !number_parse_integer(term + 6, &ranks) || ranks < 1) {
            return false;
        }
        condition->ranks = ranks;
        return true;
    }
    if (strncmp(term, "precision=", 10) != 0 || condition->compute >= 0) {
        return false;
    }
    condition->compute = text_index(term + 10, precision_compute_names);
    return condition->compute >= 0;
}

static bool condition_parse(struct document *document, char *terms, struct condition *condition)
{
    *condition = (struct condition){.ranks = 0, .compute = -1};
    char *rest;
    char *term = strtok_r(terms, blanks, &rest);
    bool  good = term != NULL;
    for (; good && term != NULL; term = strtok_r(NULL, blanks, &rest)) {
        good = add_term(document, condition, term);
    }
    return good;
}

bool condition_matches(const struct condition *condition, const struct selection *selection)
{
    return (condition->ranks == 0 || condition->ranks == selection->ranks) &&
           (condition->compute < 0 || condition->compute == selection->compute) &&
           (condition->gpu == NULL || strcmp(condition->gpu, selection->gpu) == 0) &&
           (condition->variant == NULL || strcmp(condition->variant, selection->variant) == 0);
}

bool document_names_gpu(const struct document *document, const char *gpu)
{
    for (int i = 0; i < document->condition_count; i++) {
        if (document->conditions[i].gpu != NULL && strcmp(document->conditions[i].gpu, gpu) == 0) {
            return true;
        }
    }
    return false;
}

void condition_check_variant(struct document *document, const char *variant)
{
    const char      *all = "";
    struct selection own = document_select(document, NULL);
    for (int i = 0; i < document->condition_count; i++) {
        const char *name = document->conditions[i].variant;
        if (name != NULL && strcmp(name, variant) == 0) {
            return;
        }
        if (name != NULL && strstr(all, arena_format(&document->arena, " %s,", name)) == NULL) {
            all = arena_format(&document->arena, "%s %s,", all, name);
        }
    }
    if (strcmp(variant, own.variant) != 0) {
        document_error(document, "[published] variant = %s: no [when variant=...] section has this name%s%.*s", variant,
                       all[0] != '\0' ? "; there are" : "", (int)(all[0] != '\0' ? strlen(all) - 1 : 0), all);
    }
}

// Starts a [when ...] section. If the condition is malformed, the lines of the section are still checked.
static void enter_when(struct document *document, char *terms)
{
    document->lines   = LINES_WHEN;
    document->section = NULL;
    if (document->condition_count == CONDITIONS_MAX) {
        document_error(document, "%s:%d: [%s]: more than %d [when ...] sections", document->path, document->line,
                       document->header, CONDITIONS_MAX);
        document->lines = LINES_SKIPPED;
        return;
    }
    struct condition condition;
    if (!condition_parse(document, terms, &condition)) {
        document_error(document,
                       "%s:%d: [%s]: expected [when ranks=N precision=NAME gpu=NAME variant=NAME], or some of these",
                       document->path, document->line, document->header);
    }
    document->conditions[document->condition_count++] = condition;
}

// Starts a section. line: starts with '['.
static void enter_section(struct document *document, char *line)
{
    size_t length = strcspn(line, "];");
    char  *after  = line + length + 1;
    if (line[length] != ']' || strchr(";#", after[strspn(after, blanks)]) == NULL) {
        document_error(document, "%s:%d: %s: expected [section]", document->path, document->line, line);
        document->lines = LINES_SKIPPED;
        return;
    }
    line[length] = '\0';
    text_printable(document->header, sizeof(document->header), line + 1);
    if (document->only == NULL && strncmp(line + 1, "when", 4) == 0 && (line[5] == '\0' || strchr(blanks, line[5]))) {
        enter_when(document, line + 5);
        return;
    }
    bool is_fit       = document->only != NULL && strcmp(line + 1, "fit") == 0;
    document->section = section_find(is_fit ? document->only : line + 1);
    document->origin  = is_fit ? ORIGIN_FIT : ORIGIN_FILE;
    document->lines   = LINES_SKIPPED;
    if (document->ignored != NULL && strcmp(document->ignored, line + 1) == 0) {
        return;
    }
    if (document->section == NULL) {
        document_error(document, "%s:%d: [%s]: unknown section%s", document->path, document->line, document->header,
                       hint_known(document, "[", section_suggest(line + 1), "]"));
    } else if (document->only != NULL && strcmp(document->only, document->section->name) != 0) {
        document_error(document, "%s:%d: [%s]: this file may hold [%s] only", document->path, document->line,
                       document->header, document->only);
    } else {
        document->lines = LINES_SECTION;
    }
}

static void parse_line(struct document *document, const char *start, const char *end)
{
    char       *line  = trim(document, start, end), *name, *value;
    const char *whole = arena_format(&document->arena, "%s", line);    // text_split_assignment modifies `line`
    if (line[0] == '\0' || line[0] == ';' || line[0] == '#') {
        return;
    }
    if (line[0] == '[') {
        enter_section(document, line);
    } else if (text_split_assignment(line, &name, &value)) {
        on_key(document, name, value);
    } else {
        document_error(document, "%s:%d: %s: expected key = value", document->path, document->line, whole);
    }
}

// Returns the name of the format if a file is not an INI file of this program, or NULL. TOML has quoted values and
// other sections.
static const char *foreign_format(struct document *document, const char *start, size_t bytes)
{
    const char *text        = arena_format(&document->arena, "%.*s", (int)(bytes < 65536 ? bytes : 65536), start);
    bool        has_section = false, has_other = false, has_quotes = false;
    if (strstr(text, "--num-layers") != NULL || strstr(text, "--hidden-size") != NULL) {
        return "arguments of Megatron";
    }
    for (const char *line = text; *line != '\0'; line += strcspn(line, "\n"), line += *line == '\n') {
        line += strspn(line, " \t\r");
        size_t length = strcspn(line, "\r\n"), name = strcspn(line, " \t:=\r\n"), section = strcspn(line, "]\r\n");
        size_t after = name + strspn(line + name, " \t");
        if (*line == '{') {
            return "JSON";
        }
        if (!has_section && isalpha((unsigned char)*line) && line[name] == ':' && memchr(line, '=', length) == NULL) {
            return "YAML";
        }
        if (*line == '[' && section > 1) {
            has_section = true;
            has_other |= section_find(arena_format(&document->arena, "%.*s", (int)section - 1, line + 1)) == NULL;
        }
        has_quotes |= line[after] == '=' && line[after + 1 + strspn(line + after + 1, " \t")] == '"';
    }
    return has_other && has_quotes ? "TOML" : NULL;
}

void document_parse(struct document *document, const char *path, const char *text, size_t bytes)
{
    const char *end = text + bytes;
    document->file  = path;
    bool is_stdin   = strncmp(path, CONFIG_STDIN, strlen(CONFIG_STDIN)) == 0;
    document->path  = is_stdin ? "stdin" : show(document, path);
    document->lines = LINES_BEFORE_SECTIONS;
    document->line  = 0;
    if (bytes >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0)) {
        document_error(document, "%s: is UTF-16: save it as UTF-8", document->path);
        return;
    }
    if (bytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
        text += 3;
    }
    const char *format = foreign_format(document, text, (size_t)(end - text));
    if (format != NULL) {
        if (strcmp(format, "YAML") == 0) {
            document_error(document,
                           "%s: is YAML; configs are INI: gswbench init job.ini --short --model NAME writes one, and "
                           "--from FILE converts a job of Hugging Face, Megatron or torchtitan",
                           document->path);
        } else {
            document_error(document, "%s: is %s; configs are INI: gswbench init job.ini --from %s converts it",
                           document->path, format, is_stdin ? "FILE" : document->path);
        }
        return;
    }
    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        const char *stop    = newline != NULL ? newline : end;
        document->line++;
        if (memchr(text, '\0', (size_t)(stop - text)) != NULL) {
            document_error(document, "%s:%d: a NUL byte: a config must be a text file", document->path, document->line);
            return;
        }
        parse_line(document, text, stop);
        text = stop + (newline != NULL);
    }
}
