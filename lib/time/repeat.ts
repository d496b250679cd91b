/**
 * Each run is followed by a pause of at least this many times its duration: however many rows there are, the runs use a
 * twentieth of a core.
 */
const REST = 20

/**
 * Runs `work` after `firstMs`, by default now, and then repeatedly, never twice at a time. `onError` gets each failure,
 * and the next run follows.
 */
export function repeat(
  work: () => Promise<void>,
  everyMs: number,
  onError: (error: unknown) => void,
  firstMs = 0,
): { stop(): void } {
  let isStopped = false
  let timer: NodeJS.Timeout | undefined
  const run = async () => {
    const startedAt = performance.now()
    try {
      await work()
    } catch (error) {
      onError(error)
    }
    if (!isStopped) timer = setTimeout(run, Math.max(everyMs, REST * (performance.now() - startedAt))).unref()
  }
  if (firstMs > 0) timer = setTimeout(run, firstMs).unref()
  else void run()
  return {
    stop() {
      isStopped = true
      clearTimeout(timer)
    },
  }
}
