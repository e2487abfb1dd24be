# Sourced by third_party/bootstrap and third_party/intel_stub (bash): fetches files that a lock names from a
# Debian mirror, with an apt of our own and nothing of the system's touched.
#
# Of the caller: work (a temporary folder), suite, lock, and resolve FILE, which writes a new lock from
# the signed index. Lines of a lock: "sha256 file path-on-the-mirror".

keyring=${DEBIAN_KEYRING:-/usr/share/keyrings/debian-archive-keyring.gpg}

say() { echo "${0##*/}: $*"; }
die() { echo "${0##*/}: $*" >&2; exit "${code:-1}"; }

find_mirror() {
  mirror=${DEBIAN_MIRROR:-$(apt-get indextargets --format '$(SITE)' 2>/dev/null | grep -E '/debian/?$' | head -1 || true)}
  mirror=${mirror%/}
  [ -n "$mirror" ] || code=2 die "this machine's apt names no Debian mirror: set DEBIAN_MIRROR (and install debian-archive-keyring)"
}

# An apt of our own: its lists, state and cache lie in a temporary folder; only the proxy settings of
# the system's apt remain in force. apt checks the suite's signature and each index's hash.
configure_apt() { # deb or deb-src …: what kinds of packages
  mkdir -p "$work/apt/lists/partial" "$work/apt/cache/archives/partial"
  : >"$work/apt/status"
  local kind
  for kind in "$@"; do echo "$kind [signed-by=$keyring] $mirror $suite main"; done >"$work/apt/sources.list"
  cat >"$work/apt/apt.conf" <<CONF
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
Dir::Etc::SourceList "$work/apt/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
Dir::State "$work/apt";
Dir::State::Lists "$work/apt/lists";
Dir::State::status "$work/apt/status";
Dir::Cache "$work/apt/cache";
Acquire::Languages "none";
Acquire::ForceHash "SHA256";
Acquire::Retries "3";
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Debug::NoLocking "true";
CONF
}

private_apt() { apt-get -c "$work/apt/apt.conf" -qq "$@"; }

read_index() {
  [ -r "$keyring" ] || die "no Debian archive keys at $keyring: install debian-archive-keyring or set DEBIAN_KEYRING"
  say "reading the signed index of $suite"
  private_apt update
}

# What apt's --print-uris prints, as lines of a lock: "sha256 file path-on-the-mirror".
as_entries() {
  sed -nE "s#^'$mirror/([^']*)' ([^ ]*) ([0-9]*) SHA256:([0-9a-f]*).*#\\4 \\2 \\1#p"
}

entries() { grep -v '^#' "$1"; }
has() { [ -s "$debs/$2" ] && echo "$1  $debs/$2" | sha256sum -c --status -; }

missing() { entries "$1" | while read -r sha file path; do has "$sha" "$file" || echo "$sha $file $path"; done; }

# apt's own download helper, so that nothing else need be installed; it checks the hashes itself.
download() {
  local arguments=() sha file path
  while read -r sha file path; do arguments+=("$mirror/$path" "$debs/$file" "SHA256:$sha"); done < <(missing "$1")
  [ ${#arguments[@]} -eq 0 ] && return
  say "downloading $((${#arguments[@]} / 3)) packages"
  /usr/lib/apt/apt-helper -c "$work/apt/apt.conf" -qq download-file "${arguments[@]}" >"$work/download.log" 2>&1 || true
  [ -z "$(missing "$1")" ]
}

choose_cache() {
  debs=${DEB_CACHE:-$work/debs}
  mkdir -p "$debs"
  debs=$(cd "$debs" && pwd)
}

# Sets `used` to the lock whose files are now in the cache: the given one, or if the mirror no longer has
# them another.
fetch_or_fall_back() {
  used=$lock
  if [ "${offline:-0}" = 1 ] || download "$lock"; then return; fi
  local gone
  gone=$(missing "$lock" | cut -d' ' -f2)
  say "WARNING: the lock is stale, the mirror no longer has: ${gone//$'\n'/ }" >&2
  say "WARNING: using what the signed suite '$suite' holds now (--relock makes that permanent)" >&2
  used=$work/fallback.lock
  resolve "$used"
  download "$used" || { cat "$work/download.log" >&2; die "could not download: $(missing "$used" | cut -d' ' -f2 | tr '\n' ' ')"; }
}
