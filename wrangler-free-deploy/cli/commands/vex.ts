import { buildCommand } from '@stricli/core'
import { flagsOf } from '../api/parameters.ts'
import type { ConnectionFlags } from '../connection/place.ts'
import type { CliContext } from '../context.ts'
import { connectionFlags } from '../flags.ts'
import { digestArgument, wholeDigest } from '../list/digest.ts'
import { download } from '../output/download.ts'
import { outputFlags } from '../output/flags.ts'

interface Flags extends ConnectionFlags {
  readonly format?: 'openvex' | 'cyclonedx'
  readonly out?: string
  readonly printRequest?: boolean
}

const ROUTE = '/images/{digest}/vex'
const CONTENT_TYPES = { openvex: 'application/json', cyclonedx: 'application/vnd.cyclonedx+json' } as const

async function write(this: CliContext, flags: Flags, given: string): Promise<void> {
  const { format = 'openvex' } = flags
  const digest = await wholeDigest(this, flags, given)
  const query = { format: flags.format }
  await download(this, flags, {
    ...{ method: 'GET', path: ['images', digest, 'vex'], query, expects: CONTENT_TYPES[format] },
  })
}

export const vex = buildCommand<Flags, [digest: string], CliContext>({
  func: write,
  parameters: {
    positional: { kind: 'tuple', parameters: [{ parse: String, ...digestArgument }] },
    flags: {
      ...flagsOf(ROUTE),
      out: outputFlags.out,
      printRequest: outputFlags.printRequest,
      ...connectionFlags,
    } as never,
  },
  docs: {
    brief: 'Write the decisions about an image as a VEX document',
    customUsage: ['DIGEST [flags]'],
    fullDescription: [
      'Write the decisions about an image as a VEX document: OpenVEX, or CycloneDX with --format cyclonedx.',
      'Decisions for a workload or a namespace are left out: a VEX statement is about the image wherever it runs.',
    ].join('\n'),
  },
})
