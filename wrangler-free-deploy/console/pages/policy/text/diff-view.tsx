/** The edits as a diff by line. */
import { useMemo } from 'preact/hooks'
import { Empty } from '../../../parts/states.tsx'
import { type DiffRow, hunksOf, lineDiff } from './line-diff.ts'

const LINES_AROUND = 3
/** More rows would make the page slow. */
const MAX_ROWS = 2_000
const SIGNS = { same: '', gone: '−', new: '+' } as const
const WORDS = { same: '', gone: 'Removed: ', new: 'Added: ' } as const
const count = new Intl.NumberFormat()

export function DiffView({ before, after }: { before: string; after: string }) {
  const diff = useMemo(() => lineDiff(before, after), [before, after])
  if (diff.gone + diff.added === 0)
    return <Empty title="No line was changed">The text is the generated one, line by line.</Empty>
  const hunks = hunksOf(diff.rows, LINES_AROUND)
  return (
    <div class="section">
      <p class="faint">
        {count.format(diff.added)} added and {count.format(diff.gone)} removed lines, against the generated text.
        {!diff.isExact &&
          ' There are too many changes to match single lines: all lines from the first to the last change count.'}
      </p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls has to be reached by the keyboard */}
      <section class="diff" tabIndex={0} aria-label="Changes, scrolls">
        <table>
          <caption class="unseen">Changes against the generated text</caption>
          <thead class="unseen">
            <tr>
              <th scope="col">Generated line</th>
              <th scope="col">Edited line</th>
              <th scope="col">Text</th>
            </tr>
          </thead>
          <tbody>
            {hunks.slice(0, MAX_ROWS).map((row, i) =>
              'skipped' in row ? (
                <tr key={i} class="skipped">
                  <td colSpan={3}>{count.format(row.skipped)} equal lines</td>
                </tr>
              ) : (
                <Line key={i} row={row} />
              ),
            )}
          </tbody>
        </table>
      </section>
      {hunks.length > MAX_ROWS && <p class="faint">{count.format(hunks.length - MAX_ROWS)} more rows are not shown.</p>}
    </div>
  )
}

function Line({ row: { kind, oldLine, newLine, text } }: { row: DiffRow }) {
  return (
    <tr class={kind}>
      <td>{oldLine}</td>
      <td>{newLine}</td>
      <td>
        <span aria-hidden="true">{SIGNS[kind]}</span>
        <span class="unseen">{WORDS[kind]}</span>
        {text}
      </td>
    </tr>
  )
}
