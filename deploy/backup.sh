#!/bin/sh
# Back up a database and its uploaded media while the server runs:
#   backup.sh DATABASE MEDIA FOLDER [DAYS]
# DATABASE is an SQLite file or postgresql://...; backups older than DAYS (14) are deleted.
set -eu
umask 077
if [ $# -lt 3 ]; then
  echo "backup: expected DATABASE MEDIA FOLDER [DAYS], got $# arguments" >&2
  exit 2
fi
database=$1 media=$2 folder=$3 days=${4:-14}
mkdir -p "$folder"
name=$folder/crowdtree-$(date -u +%Y%m%dT%H%M%SZ)
trap 'rm -f "$name".part' EXIT

case $database in
  postgres*)
    pg_dump --format=custom --file="$name.part" "$database"
    mv "$name.part" "$name.dump"
    ;;
  *)
    if [ ! -f "$database" ]; then
      echo "backup: there is no file $database" >&2
      exit 2
    fi
    python3 -c '
import sqlite3, sys
source = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
copy = sqlite3.connect(sys.argv[2])
source.backup(copy)
copy.close()
' "$database" "$name.part"
    mv "$name.part" "$name.db"
    ;;
esac

# after the database, so that every file that it names is there
if [ -d "$media" ]; then
  tar -C "$media" -czf "$name.part" .
  mv "$name.part" "$name.media.tar.gz"
fi
find "$folder" -name 'crowdtree-*' -type f -mtime "+$days" -exec rm -f {} +
