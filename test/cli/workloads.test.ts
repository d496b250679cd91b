/** Commands about workloads, nodes and the broker itself, in front of a broker that knows a cluster. */
import { startCluster } from './cluster.ts'
import { golden } from './golden.ts'
import { inProcess } from './in-process.ts'

const cluster = await startCluster()
const ctb = inProcess(cluster.url)

golden('workloads', ctb, ['workloads'], [['workloads', '-n', 'shop', '--status', 'risk', '--limit', '1']])
golden('workload', ctb, ['workload', 'shop/Deployment/web'])
golden('seccomp-profiles', ctb, ['seccomp', 'profiles'], [['seccomp', 'profiles', '-n', 'nowhere', '-o', 'json']])
golden('seccomp-denials', ctb, ['seccomp', 'denials', '-n', 'shop'])
golden('runtime', ctb, ['runtime', 'shop/Deployment/web'], [['runtime', '-n', 'shop', 'Deployment/api']])
golden('unshipped', ctb, ['unshipped'])
golden('contention', ctb, ['contention', '-n', 'shop'])
golden('findings', ctb, ['findings'])
golden('usage', ctb, ['usage', '-n', 'shop'])
golden('sizing', ctb, ['sizing', 'shop/Deployment/web', '--days', '2'])
golden('nodes', ctb, ['nodes'])
golden('status', ctb, ['status'])
