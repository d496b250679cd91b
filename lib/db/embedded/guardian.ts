/** A start that follows a crash attaches to the server that still runs instead of making it stop first. */
const GRACE_SECONDS = 5
const FAST_SECONDS = 30

/**
 * Ends the server of a cluster (`$1`) when no broker is left, as a shell script: a second Node would take 40 MB, and may be where
 * the server's user cannot run it. Standard input is a FIFO whose writing end each broker holds, and on which each one that joins
 * writes a line; so it ends when the last one is gone.
 */
export const GUARDIAN = `
cluster=$1
runs() {
  command=
  if [ -d /proc/self ]; then IFS= read -r command <"/proc/$pid/cmdline"; else command=$(ps -p "$pid" -o command=); fi
  case $command in *postgres*-D*"$cluster"*) return 0 ;; *) return 1 ;; esac
}
server() { read -r pid <"$cluster/postmaster.pid" && runs; }
while :; do
  while read -r _; do :; done
  left=${GRACE_SECONDS}
  while [ "$left" -gt 0 ] && server; do sleep 1; left=$((left - 1)); done
  read -r _ && continue
  server || exit 0
  for signal in INT QUIT; do
    runs && kill -"$signal" "$pid"
    left=${FAST_SECONDS}
    while runs && [ "$left" -gt 0 ]; do sleep 1; left=$((left - 1)); done
  done
done
`
