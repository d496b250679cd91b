/**
 * Resolves to the result of `work`, or to undefined after `ms`, in which case `work` goes on unobserved. Rejects as
 * `work` does.
 */
export async function within<T>(work: PromiseLike<T>, ms: number): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, ms, undefined)
  })
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}
