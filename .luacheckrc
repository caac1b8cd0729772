-- Scripts run inside Redis: Lua 5.1 with a few globals of its own.
std = "lua51"
read_globals = { "redis", "cjson", "cmsgpack", "bit", "KEYS", "ARGV" }
max_line_length = 132 -- lists of fields and headers read better whole
