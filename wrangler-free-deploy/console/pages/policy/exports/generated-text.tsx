/** A generated text with its remarks, to download or copy. The console never applies it. */
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { Reading } from '../../../api/query.ts'
import { type Commands, CopyAs } from '../../../parts/copy-as.tsx'
import { Loading, Stale } from '../../../parts/states.tsx'
import { ExportButtons } from '../export-buttons.tsx'
import { Refused } from '../refused.tsx'
import { Editor, type Going } from '../text/editor.tsx'
import { RemarkList } from '../text/remark-list.tsx'

export interface GeneratedTextProps {
  readonly reading: Reading<string>
  readonly label: string
  readonly fileName: string
  readonly commands: Commands
  /** Shown if nothing is missing. */
  readonly nothing: string
  /** Further buttons for copy and download. */
  readonly tools?: ComponentChildren
  /** Passed on to `Refused`. */
  readonly partial?: string
  readonly children?: ComponentChildren
}

export function GeneratedText(props: GeneratedTextProps) {
  const { reading, label, fileName, commands, nothing, tools, partial, children } = props
  const [going, setGoing] = useState<Going | null>(null)
  const { data, error, refetch } = reading
  const shown = (
    <div class="table-tools">
      <CopyAs {...commands} />
    </div>
  )
  if (data === undefined && error === null) return <Loading />
  if (data === undefined)
    return (
      <div class="section">
        <Refused error={error!} retry={refetch} partial={partial} />
        {shown}
      </div>
    )
  return (
    <div class="policy-columns">
      <section class="section" aria-label={label}>
        {error !== null && <Stale reading={reading} />}
        <div class="editor-tools">
          <ExportButtons text={data} fileName={fileName} />
          <span class="grow" />
          <CopyAs {...commands} />
          {tools}
        </div>
        <Editor label={label} text={data} going={going} />
      </section>
      <section class="section" aria-label="What it says about itself">
        <RemarkList text={data} nothing={nothing} onLine={(line) => setGoing({ line })} />
        {children}
      </section>
    </div>
  )
}
