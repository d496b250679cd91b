import assert from 'node:assert/strict'
import { TOKENS } from '../../support/app.ts'
import { container, digestOf, replica } from '../../support/images.ts'
import type { SeededApp } from '../cluster.ts'

export const WEB = digestOf('web of the shop')
export const API = digestOf('api of the shop')

/** Containers of the pods of the shop, so that images run. */
export async function seedWorkloads(app: SeededApp): Promise<void> {
  for (const [name, pod_name, digest, pod_ip] of [
    ['web', 'web-1', WEB, '10.1.0.1'],
    ['api', 'api-1', API, '10.1.0.2'],
  ] as const) {
    const repository = `registry.test/shop/${name}`
    const containers = [container(name, digest, { image: `${repository}:v1`, repository, tag: 'v1' })]
    const answer = await app.post('/pod/spec', replica('shop', containers, { pod_name, pod_ip, workload_name: name }), {
      token: TOKENS.BROKER_TOKEN_INGEST,
    })
    assert.equal(answer.status, 200, answer.text)
  }
}
