import { queryOf } from '../api/parameters.ts'
import { IMAGES_VIEW } from '../differences/images.ts'
import { WORKLOAD_VIEW } from '../differences/workload.ts'
import { EXIT, Failure } from '../failure.ts'
import { wholeDigest } from '../list/digest.ts'
import { routeCommand, showPages } from '../list/listing.ts'
import { namespaceOfWorkload, workloadOf } from '../list/workload.ts'

const IMAGES = '/images/{digest}/diff/{other}'
const WORKLOAD = '/workloads/{namespace}/{kind}/{name}/diff'

export const diff = routeCommand(
  {
    routes: [IMAGES, WORKLOAD],
    positional: [
      { placeholder: 'DIGEST|NAMESPACE/KIND/NAME', brief: 'An image, by its digest or its beginning, or a workload.' },
      { placeholder: 'DIGEST', brief: 'The image to compare with.', isOptional: true },
    ],
    hasLimit: false,
    flags: { namespace: namespaceOfWorkload },
    usage: ['DIGEST DIGEST [flags]', 'NAMESPACE/KIND/NAME [flags]'],
    brief: 'Compare two images, or a workload at two times; exit code 1 if anything differs',
    description: [
      'A workload is compared between --from, seven days ago by default, and --to, now by default.',
      'Exit code 0 says that nothing differs in what is known; what is not known is said on stderr.',
    ],
  },
  async (context, flags, [first, second]) => {
    if (second === undefined) {
      if (!first!.includes('/')) throw new Failure('expected DIGEST twice, or NAMESPACE/KIND/NAME', EXIT.usage)
      const path = ['workloads', ...workloadOf(flags.namespace, first!), 'diff']
      return showPages(context, flags, { path, query: queryOf(WORKLOAD, flags) }, WORKLOAD_VIEW, {})
    }
    const alone = ['from', 'to', 'namespace'].find((name) => flags[name] !== undefined)
    if (alone !== undefined) throw new Failure(`--${alone}: expected a workload, not images`, EXIT.usage)
    const from = await wholeDigest(context, flags, first!)
    const path = ['images', from, 'diff', await wholeDigest(context, flags, second)]
    return showPages(context, flags, { path, query: {} }, IMAGES_VIEW, {})
  },
)
