/** Times of profiles: RFC 3339 in UTC with `Z`, fractions of 0, 3 or 6 digits. */

// Before the `Z` such texts sort as their times do.
const plain = (time: string) => time.slice(0, -1)

/** Negative where `a` is earlier. */
export function compareTimes(a: string, b: string): number {
  const [one, other] = [plain(a), plain(b)]
  return one < other ? -1 : one === other ? 0 : 1
}

/** The earliest time; null of none. */
export const earliest = (times: readonly string[]): string | null => [...times].sort(compareTimes)[0] ?? null

/** The latest time; null of none. */
export const latest = (times: readonly string[]): string | null => [...times].sort(compareTimes).at(-1) ?? null
