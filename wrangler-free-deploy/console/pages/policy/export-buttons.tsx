/** Buttons to download and to copy a text. */
import { CopyButton } from '../../parts/copy-as.tsx'
import { download } from '../../parts/csv.ts'

export interface ExportButtonsProps {
  readonly text: string
  readonly fileName: string
  readonly onDownload?: () => void
}

const TYPES: Readonly<Record<string, string>> = { yaml: 'application/yaml', json: 'application/json' }

export function ExportButtons({ text, fileName, onDownload }: ExportButtonsProps) {
  const type = TYPES[fileName.slice(fileName.lastIndexOf('.') + 1)] ?? 'text/plain'
  return (
    <>
      <button
        type="button"
        disabled={text === ''}
        title={fileName}
        onClick={() => {
          download(fileName, type, text)
          onDownload?.()
        }}
      >
        Download
      </button>
      {text !== '' && <CopyButton label="Copy" text={text} isLong />}
    </>
  )
}
