/** Results as the component posts them. All parts of a version have its mark, so that mixtures are found. */
import assert from 'node:assert/strict'
import type http from 'node:http'
import type postgres from 'postgres'
import { type Fields, keySignature, resultOf, signature, statement } from '../attestations/results.ts'
import { TOKENS } from '../support/app.ts'
import { type Broker, type Reply, request } from '../support/broker.ts'
import { digestOf } from '../support/images.ts'

export const imageOf = (image: number) => digestOf(`checked-image-${image}`)

const FIRST_CHECK = Date.UTC(2026, 0, 1)
/** Each version is one second newer than the previous one. */
const checkedAt = (version: number) => new Date(FIRST_CHECK + version * 1_000).toISOString()

/** The result of check `version` of image number `image`; `twin` distinguishes results of the same time. */
export function bodyOf(image: number, version: number, twin = ''): Fields {
  const mark = `${version}${twin}`
  const count = 1 + (version % 9)
  return resultOf(imageOf(image), {
    ...{ checked_at: checkedAt(version), repository: mark },
    signatures: Array.from({ length: count }, (_, n) => signature({ san: mark, tlog_index: n })).concat(
      keySignature({ key_name: mark }),
    ),
    attestations: Array.from({ length: count }, () => statement({ predicate_type: mark, san: mark })),
  })
}

/** Posts a result to a broker that has `TOKENS`. */
export function postResult({ url }: Pick<Broker, 'url'>, body: Fields, agent?: http.Agent): Promise<Reply> {
  return request(`${url}/images/${body.digest}/attestation`, {
    method: 'POST',
    body: JSON.stringify(body),
    headers: { authorization: `Bearer ${TOKENS.BROKER_TOKEN_SUPPLYCHAIN}` },
    ...(agent && { agent }),
  })
}

/** Stores images with the numbers 0 to `images` - 1 in the inventory. */
export async function know(sql: postgres.Sql, images: number): Promise<void> {
  for (let image = 0; image < images; image++)
    await sql`insert into image values (${imageOf(image)}, null, '{}', 'repo', now() at time zone 'utc', now() at time zone 'utc')`
}

/** The mark of the stored result by digest. Fails if parts of a row are of different results. */
export async function storedMarks(sql: postgres.Sql): Promise<Map<string, string>> {
  const rows = await sql<Record<string, string>[]>`
    select digest, repository, signatures, attestations, verified_signatures, verified_attestations, signers, verified_predicates,
           to_json(checked_at) #>> '{}' as checked_at
    from image_attestation`
  return new Map(
    rows.map((row) => {
      const mark = row.repository!
      const version = Number.parseInt(mark, 10)
      const count = 1 + (version % 9)
      assert.equal(
        Date.parse(`${row.checked_at}Z`),
        FIRST_CHECK + version * 1_000,
        `${row.digest}: the time of another result`,
      )
      for (const [column, length] of [
        ['signatures', count + 1],
        ['verified_signatures', count + 1],
        ['attestations', count],
        ['verified_attestations', count],
        ['signers', 2],
      ] as const) {
        const entries = JSON.parse(row[column]!) as { san?: string; keyName?: string }[]
        assert.equal(entries.length, length, `${row.digest}: ${column}`)
        for (const { san, keyName } of entries) assert.equal(keyName ?? san, mark, `${row.digest}: a mixture`)
      }
      assert.deepEqual(JSON.parse(row.verified_predicates!), [mark])
      return [row.digest!, mark]
    }),
  )
}
