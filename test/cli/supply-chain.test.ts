/** Commands about images and vulnerabilities, in front of a broker that knows a cluster. */
import { startCluster } from './cluster.ts'
import { golden } from './golden.ts'
import { inProcess } from './in-process.ts'

const cluster = await startCluster()
const ctb = inProcess(cluster.url)

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
