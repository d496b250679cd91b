# One dump of the database as a file of its own, which is whole or not there, below a folder for each release; the newest are kept.
set -eu
if [ -n "${DATABASE_PASSWORD_FILE:-}" ]; then
  PGPASSWORD=$(cat "$DATABASE_PASSWORD_FILE")
  export PGPASSWORD
fi
umask 077
folder=$BACKUP_FOLDER/$BACKUP_NAME
mkdir -p "$folder"
# Those that were cut short, by a node that went away for instance.
rm -f "$folder"/*.part
file=$folder/$(date -u +%Y-%m-%dT%H-%M-%SZ).dump
trap 'rm -f "$file.part"' EXIT
pg_dump --no-password --format=custom --file="$file.part" ${DATABASE_URL:+"--dbname=$DATABASE_URL"}
pg_restore --list "$file.part" > /dev/null
mv "$file.part" "$file"
echo "written: $file, $(wc -c < "$file") bytes"
ls "$folder" | sort -r | tail -n "+$((BACKUP_KEEP + 1))" | while read -r old; do
  rm "$folder/$old"
  echo "deleted: $folder/$old"
done
