#!/usr/bin/env bash
# Checks of the checkout itself: generated files are current, go.mod is tidy
# enough to build from, and READMEs name only paths that exist.
set -euo pipefail
cd "$(dirname "$0")/../.."
fail=0

before=$(git status --porcelain)
go generate ./...
if [ "$(git status --porcelain)" != "$before" ]; then
  echo "verify: generated files are not current; run 'make generate' and commit" >&2
  git status --porcelain >&2
  fail=1
fi

go mod verify >/dev/null

# A path in backquotes that starts with one of our folders must exist.
# shellcheck disable=SC2016
while IFS=: read -r file path; do
  [ -e "$path" ] || [ -e "$(dirname "$file")/$path" ] || {
    echo "verify: $file names $path, which does not exist" >&2
    fail=1
  }
done < <(git ls-files '*README.md' '*.github/*.md' | xargs -r grep -oE '`(cmd|builder|templates|plugins|images|scripts|\.ci)/[A-Za-z0-9._/-]+`' --with-filename | tr -d '`')
exit $fail
