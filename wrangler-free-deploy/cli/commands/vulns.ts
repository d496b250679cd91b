import { pageRows, queryOf } from '../api/parameters.ts'
import { EXIT, Failure } from '../failure.ts'
import { digestArgument, wholeDigest } from '../list/digest.ts'
import { type ListFlags, routeCommand, showPages, windowOf } from '../list/listing.ts'
import { CLUSTER_VIEW, IMAGE_VIEW } from '../vulnerabilities/columns.ts'
import { clusterFacts, failOnFlag, imageFacts, judgeOf } from '../vulnerabilities/fail-on.ts'
import { unscannedTexts } from '../vulnerabilities/unscanned.ts'

const CLUSTER = '/vulnerabilities'
const IMAGE = '/images/{digest}/vulnerabilities'

const nextOf = ({ nextAfter }: { nextAfter: string | null }) => nextAfter

export const vulns = routeCommand(
  {
    routes: [IMAGE, CLUSTER],
    positional: [{ ...digestArgument, isOptional: true }],
    hasLimit: true,
    flags: { failOn: failOnFlag },
    brief: 'List vulnerabilities of the cluster, a namespace or an image, the worst first',
    description: [
      'With --fail-on the exit code is 1 if any listed finding is p0 (of tier P0), kev (known to be exploited) or',
      'executed (a file of the package was executed; a library that was only loaded does not count).',
      'All pages are judged, whatever --limit says. Findings that are decided in all their workloads do not count.',
      'Findings of which it is not known, and running images that nobody scanned, do not make the exit code 1;',
      'how many there are is said on stderr.',
    ],
  },
  async (context, flags, [digest]) => {
    if (digest === undefined) {
      refuse(flags, ['source'], 'expected DIGEST as well')
      const isJudged = flags.failOn !== undefined && !flags.printRequest
      const gaps = isJudged ? await unscannedTexts(context, flags) : []
      const query = { ...queryOf(CLUSTER, flags), ...windowOf(flags) }
      const view = { ...CLUSTER_VIEW, judge: judgeOf(flags, clusterFacts, gaps) }
      return showPages(context, flags, { path: ['vulnerabilities'], query }, view, {
        nextOf,
        maxRows: pageRows(CLUSTER),
      })
    }
    refuse(flags, ['namespace', 'allNamespaces', 'running'], 'expected no DIGEST')
    const path = ['images', await wholeDigest(context, flags, digest), 'vulnerabilities']
    const view = { ...IMAGE_VIEW, judge: judgeOf(flags, imageFacts) }
    return showPages(context, flags, { path, query: queryOf(IMAGE, flags) }, view, { nextOf, maxRows: pageRows(IMAGE) })
  },
)

/** Flags of the other route. */
function refuse(flags: ListFlags, names: readonly string[], rule: string): void {
  const given = names.find((name) => flags[name] !== undefined)
  if (given === undefined) return
  throw new Failure(`--${given.replace('allN', 'all-n')}: ${rule}`, EXIT.usage)
}
