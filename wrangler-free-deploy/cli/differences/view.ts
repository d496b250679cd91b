/** How differences are shown: as rows, with what is not known, and with the exit code 1 if there are any. */
import type { Colour } from '../output/cell.ts'
import type { View } from '../output/show.ts'
import type { Row } from './rows.ts'

const COLOURS: Readonly<Record<string, Colour>> = { came: 'red', weakened: 'red', went: 'green' }

interface Reading<Answer> {
  readonly rowsOf: (answer: Answer) => readonly Row[]
  /** What is not known of the answer. */
  readonly gapsOf: (answer: Answer) => readonly string[]
  /** What else has to be said of it. */
  readonly notesOf: (answer: Answer) => readonly string[]
}

export const viewOf = <Answer>({ rowsOf, gapsOf, notesOf }: Reading<Answer>): View<Answer, Row> => ({
  rowsOf,
  columns: [
    { header: 'PART', of: ({ part }) => part },
    { header: 'CHANGE', of: ({ change }) => change, colourOf: ({ change }) => COLOURS[change] ?? null },
    { header: 'WHAT', of: ({ what }) => what },
    { header: 'BEFORE', of: ({ before }) => before },
    { header: 'AFTER', of: ({ after }) => after },
  ],
  nameOf: ({ what }) => what,
  said: (answer) => [...notesOf(answer), ...gapsOf(answer)],
  nothing: 'nothing differs in what is known',
  judge: (answers) => {
    const isSo = answers.some((answer) => rowsOf(answer).length > 0)
    const isWhole = answers.every((answer) => gapsOf(answer).length === 0)
    return { isSo, said: isSo || isWhole ? [] : ['this does not say that nothing differs: not everything is known'] }
  },
})
