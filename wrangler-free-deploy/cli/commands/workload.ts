import { FAIL_ON, judged } from '../dossier/judged.ts'
import type { Profile } from '../dossier/profile.ts'
import { type PartRow, rowsOfProfile } from '../dossier/rows.ts'
import { saidOfProfile } from '../dossier/said.ts'
import { EXIT } from '../failure.ts'
import { chosen } from '../flags.ts'
import { listing } from '../list/listing.ts'
import type { Colour } from '../output/cell.ts'

/** States of dimensions and severities of findings. */
const COLOURS: Readonly<Record<string, Colour>> = {
  ...{ risk: 'red', unshipped: 'red', critical: 'red', high: 'red', P0: 'red' },
  ...{ warn: 'yellow', medium: 'yellow', P1: 'yellow', no: 'yellow' },
  ...{ ok: 'green', yes: 'green' },
}

export const workload = listing<Profile, PartRow>({
  route: '/workloads/{namespace}/{kind}/{name}/profile',
  flags: {
    failOn: chosen(FAIL_ON, 'Exit code 1 if so, and 5 where it is not known.'),
  },
  read: (context, { failOn }, page) => {
    if (failOn === undefined) return page
    const { answer, why } = judged(page.answer, failOn as (typeof FAIL_ON)[number])
    if (answer !== false) context.exitWith(answer ? EXIT.isSo : EXIT.partial)
    if (answer !== false) context.say(`--fail-on ${failOn}: ${answer ? why : `not known: ${why}`}`)
    return page
  },
  rowsOf: rowsOfProfile,
  columns: [
    { header: 'WORKLOAD', of: ({ workload }) => workload, isWide: true },
    { header: 'PART', of: ({ part }) => part },
    { header: 'STATE', of: ({ state }) => state, colourOf: ({ state }) => COLOURS[state] ?? null },
    { header: 'DETAIL', of: ({ detail }) => detail, isSentence: true },
  ],
  nameOf: ({ workload }) => workload,
  said: saidOfProfile,
  brief: 'Show what is known of a workload: network, syscalls, images, runtime, controls, drift, findings',
  description: [
    'Computed from what is stored now. Unknown is never ok.',
    '--fail-on risk: the posture is risk. p0: a running image has a vulnerability of tier P0.',
    'drift: a tag moved, an image or a security context left the baseline, or a file ran that no image shipped.',
  ],
})
