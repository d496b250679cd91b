/** The scans from which the rows come, and how reliably they belong to this image. */
import type { Answer } from '../../../api/client.ts'
import { Digest } from '../../../parts/text.tsx'
import { Ago } from '../../../parts/time.tsx'

type Page = Answer<'/images/{digest}/vulnerabilities'>
type Report = Page['reports'][number]

const JOINS: Readonly<Record<Report['join'], string>> = {
  image_id: 'by digest',
  platform_manifest: 'by the digest of its platform',
  workload_tag: 'guessed by repository and tag, which may have moved',
  report_digest: 'by the digest of the report',
}

export const joinText = (join: Report['join']): string => JOINS[join]

export function Reports({ reports, retiredGuesses }: Pick<Page, 'reports' | 'retiredGuesses'>) {
  if (reports.length === 0 && retiredGuesses.length === 0) return null
  return (
    <ul class="facts">
      {reports.map((report) => (
        <li key={`${report.source} ${report.reportDigest}`}>
          <bdi>{[report.scannerName ?? report.source, report.scannerVersion].filter(Boolean).join(' ')}</bdi>: scanned{' '}
          <Ago at={report.scannedAt} />, {joinText(report.join)}
          {report.dbUpdatedAt !== null && (
            <>
              , with a database of <Ago at={report.dbUpdatedAt} />
            </>
          )}
          {report.osName !== null && (
            <>
              , <bdi>{[report.osFamily, report.osName].filter(Boolean).join(' ')}</bdi>
            </>
          )}
          {report.osEosl && ', an operating system at the end of its life'}
        </li>
      ))}
      {retiredGuesses.map(({ source, reportDigest, repository, tag }) => (
        <li key={`${source} ${reportDigest}`} class="faint">
          A report of {source} for <Digest digest={reportDigest} isLink={false} /> was guessed by {repository}:{tag},
          and no longer counts.
        </li>
      ))}
    </ul>
  )
}
