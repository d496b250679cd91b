/** Commands about images and vulnerabilities, in front of a broker that knows a cluster. */
import { startCluster } from './cluster.ts'
import { golden, goldenCalls } from './golden.ts'
import { inProcess } from './in-process.ts'
import { DB, OLD_WEB } from './seed/supply-chain.ts'
import { API, WEB } from './seed/workloads.ts'

const cluster = await startCluster()
const ctb = inProcess(cluster.url)
const short = (digest: string) => digest.slice(0, 'sha256:'.length + 12)

golden(
  'images',
  ctb,
  ['images'],
  [
    ['images', '-n', 'shop', '--limit', '1'],
    ['images', '-o', 'jsonpath={range .items[*]}{.repository}{"\\n"}{end}'],
    ['images', '-n', 'nowhere'],
    ['images', '--print-request', '-n', 'shop'],
  ],
)
golden(
  'vulns',
  ctb,
  ['vulns'],
  [
    ['vulns', '-n', 'shop', '--limit', '1', '--fail-on', 'p0,kev,executed'],
    ['vulns', '--tier', 'Background', '--fail-on', 'p0'],
    ['vulns', '-o', 'jsonpath={.items[*].id}'],
  ],
)
golden(
  'vulns-image',
  ctb,
  ['vulns', WEB],
  [
    ['vulns', DB, '--fail-on', 'kev'],
    ['vulns', short(API), '--kev', 'true'],
  ],
)
golden('exposure', ctb, ['exposure', 'CVE-2026-0001'], [['exposure', 'ghsa-aaaa-bbbb-cccc', '--window-hours', '1']])
golden(
  'search',
  ctb,
  ['search', 'openssl'],
  [
    ['search', 'shop'],
    ['search', short(WEB)],
    ['search', '10.1.0.2'],
    ['search', 'registry.test/shop/web'],
  ],
)
golden('components', ctb, ['components', '--name', 'openssl'], [['components', '--purl', 'pkg:npm/left-pad']])
golden(
  'sbom',
  ctb,
  ['sbom', short(WEB)],
  [
    ['sbom', WEB, '--cyclonedx'],
    ['sbom', WEB, '--source', 'registry', '-o', 'name'],
    ['sbom', DB],
  ],
)
goldenCalls('vex', ctb, [
  ['vex', short(WEB)],
  ['vex', WEB, '--format', 'cyclonedx'],
  ['vex', WEB, '--print-request'],
])
golden(
  'trust',
  ctb,
  ['trust'],
  [
    ['trust', '-n', 'shop', '--fail-on', 'wouldDeny'],
    ['trust', '-n', 'nowhere'],
  ],
)
golden('signatures', ctb, ['signatures', '-n', 'shop'])
golden('coverage', ctb, ['coverage'], [['coverage', '--part', 'containers', '--limit', '1']])
golden('changes', ctb, ['changes', '-n', 'shop'], [['changes', '-n', 'shop', '--last', '30m', '--limit', '1']])
golden(
  'diff-images',
  ctb,
  ['diff', short(OLD_WEB), WEB],
  [
    ['diff', DB, DB],
    ['diff', WEB, WEB],
  ],
)
golden(
  'diff-workload',
  ctb,
  ['diff', 'shop/Deployment/web'],
  [['diff', 'Deployment/api', '-n', 'shop', '--from', '1m']],
)
golden('decisions', ctb, ['decisions', 'CVE-2026-0004'], [['decisions', 'CVE-2026-0001']])
