/** Whether an image has an SBOM, its source, and its reliability. */
import { addressOf } from '../../../api/client.ts'
import { useRead } from '../../../api/query.ts'
import { CopyAs } from '../../../parts/copy-as.tsx'
import { counted } from '../../../parts/plural.ts'
import { Empty, Shown } from '../../../parts/states.tsx'
import { Badge } from '../../../parts/text.tsx'
import { Ago } from '../../../parts/time.tsx'
import { href } from '../../../place.ts'
import { trustText } from './words.ts'

const PATH = '/images/{digest}/sbom'

export function SbomOf({ digest }: { digest: string }) {
  const params = { path: { digest }, query: { limit: 1 } }
  const reading = useRead(PATH, params)
  return (
    <div class="section">
      <h3>SBOM</h3>
      <Shown reading={reading}>
        {({ reports }) =>
          reports.length === 0 ? (
            <Empty title="No SBOM">
              Nobody posted one for this image, so it is not known what is in it beyond the findings of scanners.
            </Empty>
          ) : (
            <>
              <ul class="facts">
                {reports.map(
                  ({ source, reportDigest, scannerName, itemCount, sbomFormat, sbomTrust, scannedAt, join }) => (
                    <li key={`${source} ${reportDigest}`}>
                      <a href={href(['image', digest])}>{counted(itemCount, 'component')}</a>
                      {sbomFormat !== null && (
                        <>
                          {' as '}
                          <bdi>{sbomFormat}</bdi>
                        </>
                      )}
                      , from <bdi>{scannerName ?? source}</bdi>, <Ago at={scannedAt} />;{' '}
                      <Badge tone={sbomTrust === 'verified' ? 'good' : 'plain'}>
                        {sbomTrust ?? 'trust not stated'}
                      </Badge>{' '}
                      <span class="faint">
                        {trustText(sbomTrust)}
                        {join === 'workload_tag' && '; guessed by repository and tag, which may have moved'}
                      </span>
                    </li>
                  ),
                )}
              </ul>
              <div class="table-tools">
                <CopyAs ctb={['sbom', digest]} url={addressOf(PATH, { path: { digest } })} />
              </div>
            </>
          )
        }
      </Shown>
    </div>
  )
}
