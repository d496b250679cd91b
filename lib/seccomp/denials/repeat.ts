/** After each run a rest of so many times what it took: however much there is to look at, a twentieth of a core is enough. */
const REST = 20

/** Runs `work` at once and then again and again, never twice at a time. A failure is told of by `onError`, and the next run follows. */
export function repeat(
  work: () => Promise<void>,
  everyMs: number,
  onError: (error: unknown) => void,
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
  void run()
  return {
    stop() {
      isStopped = true
      clearTimeout(timer)
    },
  }
}
