# The public headers as doxygen wants them, line for line. A plain comment above a declaration becomes
# `///`, one behind it `///<`. As people read them, a comment speaks for all declarations up to the next
# empty line, and that of a type for its first fields: doxygen is told so.

function escaped(text) {
  gsub(/[<$@%]/, "\\\\&", text)
  # Indented lines are formulas: on lines of their own, as they are.
  if (text ~ /^  [^- ]/) { sub(/^ +/, "", text); return "\\n `" text "`" }
  return text
}

# Links to the pages that docs.cmake names are kept; the rest is no part of the documentation.
FILENAME ~ /\.md$/ {
  for (rest = $0; match(rest, /!?\[[^][]+\]\([^):]*\)/); rest = substr(rest, RSTART + RLENGTH)) {
    link = substr(rest, RSTART, RLENGTH)
    if (link !~ /\((\.\.\/)?(README|include\/API|bench\/TUNING)\.md\)$/) link = link ~ /^!/ ? "" : substr(link, 2, index(link, "](") - 2)
    printf "%s%s", substr(rest, 1, RSTART - 1), link
  }
  print rest
  next
}

{ match($0, /[^ ]|$/); indent = RSTART }

FNR == 1 && /^\/\/ vkgemm: / { sub(/^\/\/ [^ ]*/, "/// \\namespace vkgemm \\brief"); print; next }
FNR == 1 && /^\/\/ vkgemm\// { sub(/^\/\/ vkgemm\//, "/// \\file "); sub(/:/, " \\brief"); print; next }

# What is said of a section is of no declaration.
/^\/\/ --- / { section = 1 }
section && /^\/\// { print ""; next }
{ section = 0 }

/^ *\/\// {
  sub(/^ *\/\/ ?/, "")
  if (indent == behind) { print "///< " escaped($0); next }  # goes on with what stands behind a declaration
  spoken = (fresh ? spoken " " : "") escaped($0)
  speaks_at = indent
  fresh = 1
  print "/// " escaped($0)
  next
}
/^ *$/ { spoken = ""; print; next }
/^ *[#}]|^template / { print; next }
# What every value has.
/operator==.* = default;|operator=\(|^  ~?[A-Z][A-Za-z]*\([^ ]*( ?const [^ ]*)?\)( noexcept)?;/ { print ""; next }
{
  line = $0
  behind = match(line, /[;,] +\/\/ /) ? RSTART + RLENGTH - 3 : 0
  if (behind) {
    line = substr(line, 1, behind - 1) "///< " escaped(substr(line, behind + 3))
  } else if (spoken && !fresh && indent == speaks_at && line !~ /^ *}/ && (spoken != nothing || line !~ /\(/)) {
    line = "/** " spoken " */ " line
  }
  if (fresh && line ~ /^(typedef )?(enum|struct|class) .*[{]$/) { spoken = nothing; speaks_at = 3 }
  fresh = 0
  print line
}
BEGIN { nothing = "&zwj;" }
