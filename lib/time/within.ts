/** What `work` resolves to, or undefined when that takes longer than `ms`: then it is left to itself. Rejects as `work` does by then. */
export async function within<T>(work: PromiseLike<T>, ms: number): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, ms, undefined)
  })
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}
