import { composed } from '../list/composed.ts'
import { timeText } from '../output/cell.ts'
import { type Fact, factsOf, QUESTIONS } from '../status/facts.ts'

export const status = composed<{ readonly items: readonly Fact[] }, Fact>({
  questions: QUESTIONS,
  compose: async (context, flags) => ({ items: await factsOf(context, flags) }),
  rowsOf: ({ items }) => items,
  columns: [
    { header: 'WHAT', of: ({ what }) => what },
    { header: 'STATE', of: ({ state }) => state, colourOf: ({ needsLook }) => (needsLook ? 'yellow' : null) },
    { header: 'TIME', of: ({ time }) => time, isTime: true },
    { header: 'NEEDS A LOOK', of: ({ needsLook }) => needsLook, isWide: true },
    { header: 'DETAIL', of: ({ detail }) => detail, isSentence: true },
  ],
  nameOf: ({ what }) => what,
  said: ({ items }) =>
    items
      .filter(({ needsLook }) => needsLook)
      .map(({ what, state, time, detail }) => {
        const at = time === null ? null : timeText(time, true)
        return `needs a look: ${what}: ${[state, detail, at].filter(Boolean).join(', ')}`
      }),
  brief: 'Show what the broker holds and since when, its jobs, silent nodes and versions',
  description: [
    'Exit code 0 whatever it finds: stderr names what needs a look. 6 if the broker cannot be reached.',
    'TIME is what DETAIL says of it. ctb coverage lists by name what is not known.',
  ],
})
