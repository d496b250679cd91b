/** How differences are shown: as rows, with what is not known, and with the exit code 1 if there are any. */
import type { Colour } from '../output/cell.ts'
import type { View } from '../output/show.ts'
import type { Row } from './rows.ts'

/** Only of changes that are for the worse or the better. */
const COLOURS: Readonly<Record<string, Colour>> = {
  'findings came': 'red',
  'findings went': 'green',
  'confinement weakened': 'red',
}

interface Reading<Answer> {
  readonly rowsOf: (answer: Answer) => readonly Row[]
  /** The parts that are not known. */
  readonly gapsOf: (answer: Answer) => readonly string[]
  /** Further lines for stderr, such as lists that are cut. */
  readonly notesOf: (answer: Answer) => readonly string[]
}

export const viewOf = <Answer>({ rowsOf, gapsOf, notesOf }: Reading<Answer>): View<Answer, Row> => ({
  rowsOf,
  columns: [
    { header: 'PART', of: ({ part }) => part },
    {
      header: 'CHANGE',
      of: ({ change }) => change,
      colourOf: ({ part, change }) => COLOURS[`${part} ${change}`] ?? null,
    },
    { header: 'WHAT', of: ({ what }) => what },
    { header: 'BEFORE', of: ({ before }) => before },
    { header: 'AFTER', of: ({ after }) => after },
  ],
  nameOf: ({ name }) => name,
  said: (answer) => [...notesOf(answer), ...gapsOf(answer)],
  nothing: 'nothing differs in what is known',
  judge: (answers) => {
    const isSo = answers.some((answer) => rowsOf(answer).length > 0)
    const isWhole = answers.every((answer) => gapsOf(answer).length === 0)
    return { isSo, said: isSo || isWhole ? [] : ['this does not say that nothing differs: not everything is known'] }
  },
})
