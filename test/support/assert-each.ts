import assert from 'node:assert/strict'

/** Fails with every item for which `check` fails, and the reasons. */
export async function assertEach<T>(items: Iterable<T>, check: (item: T) => unknown): Promise<void> {
  const offenders: string[] = []
  let count = 0
  for (const item of items) {
    count++
    try {
      await check(item)
    } catch (error) {
      offenders.push(`${item}: ${(error as Error).message}`)
    }
  }
  assert.ok(count > 0, 'nothing was checked')
  assert.ok(offenders.length === 0, offenders.join('\n'))
}
