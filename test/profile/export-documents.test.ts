/** Documents of an export from profiles that are made in the test, for states that are hard to bring about by posts. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { HttpError } from '../../lib/errors.ts'
import { makeDocuments } from '../../lib/profile/export/bundle.ts'
import { type Artifact, type ExportDocument, isAvailable, type Source } from '../../lib/profile/export/document.ts'
import { startApp, TOKENS } from '../support/app.ts'
import { tellWorkload } from '../support/exports.ts'
import { digestOf } from '../support/images.ts'
import { seed } from '../support/policy-cluster.ts'
import { flowPeer, image, imageContainer, type ProfileParts, profileOf } from '../support/profiles.ts'
import { component, storeSbom } from '../support/supply-chain.ts'

const app = await startApp({ POD_TRAFFIC_RETENTION_DAYS: '0', ...TOKENS })
const uncounted = await startApp({ POD_TRAFFIC_RETENTION_DAYS: '0', ...TOKENS }, app)
const NOBODY = { namespace: 'nowhere', kind: 'Deployment', name: 'web' }

const sourceOf = (key: Source['key'], mode: Source['mode'], parts: ProfileParts, on = app): Source => ({
  ...{ ...profileOf(key, parts), db: on.db, config: on.deps.config, key, mode },
})
const reasonOf = (one: ExportDocument) => (isAvailable(one) ? null : one.reason)

async function refusalOf(work: Promise<unknown>): Promise<string | undefined> {
  try {
    await work
  } catch (error) {
    assert.ok(error instanceof HttpError && error.status === 409)
    return (error.facts as { refusals: { reason: string }[] }).refusals[0]!.reason
  }
  return undefined
}

test('a workload of which nothing is known has a reason for each artifact', async () => {
  await seed(app, [], [], [])
  const artifacts: Artifact[] = ['networkpolicy', 'seccompprofile', 'securitycontext', 'sbom', 'vex', 'admission']
  const documents = await makeDocuments(sourceOf(NOBODY, 'enforce', {}), artifacts, false)
  assert.deepEqual(
    documents.map(({ artifact }) => artifact),
    artifacts,
  )
  for (const [i, says] of [
    /no pod is known/,
    /no seccomp profile/,
    /no container of the workload is known/,
    /no image of the workload is known/,
    /no finding of any image/,
    /no image of the workload runs/,
  ].entries())
    assert.match(reasonOf(documents[i]!)!, says)
})

test('while flows are counted for the first time there is no policy, and the rest is exported', async () => {
  await uncounted.sql`update flow_edge_cursor set as_of = null`
  const source = sourceOf(NOBODY, 'audit', {}, uncounted)
  const [policy] = await makeDocuments(source, ['networkpolicy', 'sbom'], false)
  assert.match(reasonOf(policy!)!, /no policy can be made: .*counted for the first time/)
})

test('a policy enforces only what was seen as a whole and for 24 hours', async () => {
  const { key } = await tellWorkload(app, { isWatched: false })
  const peers = [flowPeer()]
  const make = (
    network: NonNullable<ProfileParts['network']>,
    isObserved: boolean | null,
    isAcknowledged = false,
    mode: Source['mode'] = 'enforce',
  ) => makeDocuments(sourceOf(key, mode, { network, isObserved }), ['networkpolicy'], isAcknowledged)
  const whole = await make({ peers }, true)
  assert.ok(isAvailable(whole[0]!) && !/WARNING/.test(whole[0].content))
  for (const isObserved of [false, null]) assert.match((await refusalOf(make({ peers }, isObserved)))!, /24 hours/)
  assert.match((await refusalOf(make({ peers: [] }, true)))!, /no flows/)
  assert.match((await refusalOf(make({ peers, truncated: true }, true)))!, /more flows or peers/)
  for (const made of [
    await make({ peers, truncated: true }, true, true),
    await make({ peers, truncated: true }, true, false, 'audit'),
  ])
    assert.match((made[0] as { content: string }).content, /^# WARNING: the profile shows a part of the peers only/m)
})

test('a policy of a workload on the host network, where most plugins apply none, is refused too', async () => {
  const { key, pod } = await tellWorkload(app, { isWatched: false })
  await seed(app, [{ ...pod, pod_obj: { ...pod.pod_obj, spec: { ...pod.pod_obj.spec, hostNetwork: true } } }], [], [])
  const source = sourceOf(key, 'enforce', { network: { peers: [flowPeer()] }, isObserved: true })
  assert.match((await refusalOf(makeDocuments(source, ['networkpolicy'], false)))!, /host network/)
})

test('SBOMs are of the images that run, and of the newest image of a container that runs none', async () => {
  const [running, older, newest, stale] = ['running', 'older', 'newest', 'stale'].map(digestOf) as string[]
  const before = (digest: string, lastSeen: string) => image(digest, { lastSeen })
  const containers = [
    imageContainer('init', {
      previous: [before(older!, '2026-01-01T00:00:00Z'), before(newest!, '2026-01-02T00:00:00Z')],
    }),
    imageContainer('gone', { stale: true, previous: [image(stale!)] }),
    imageContainer('main', { running: [image(running!)], previous: [image(older!)] }),
    imageContainer('twin', { running: [image(running!)] }),
  ]
  const documents = await makeDocuments(sourceOf(NOBODY, 'audit', { containers }), ['sbom'], false)
  assert.deepEqual(
    documents.map((one) => [one.image!.digest, one.image!.containers]),
    [
      [newest, ['init']],
      [running, ['main', 'twin']],
    ],
  )
})

test('where the profile does not read all images, a document says so', async () => {
  const source = sourceOf(NOBODY, 'audit', {
    containers: [imageContainer('main', { running: [image(digestOf('one'))] })],
  })
  source.profile.dimensions.images.truncated = true
  const documents = await makeDocuments(source, ['sbom'], false)
  assert.deepEqual(
    documents.map(({ image }) => image?.digest ?? null),
    [digestOf('one'), null],
  )
  assert.match(reasonOf(documents[1]!)!, /more images than its profile reads/)
})

test('SBOMs of more images than a bundle has are left out, and no two files have one name', async () => {
  const digests = Array.from({ length: 66 }, (_, n) => `sha256:${'0'.repeat(60)}${String(n).padStart(4, '0')}`)
  await storeSbom(app, digests[65]!, 'registry', [component('one')])
  const containers = [imageContainer('a/b', { running: digests.map((digest) => image(digest)) })]
  const documents = await makeDocuments(sourceOf(NOBODY, 'audit', { containers }), ['sbom'], false)
  assert.equal(documents.length, 66)
  assert.equal(new Set(documents.map(({ fileName }) => fileName)).size, 66)
  assert.equal(documents[0]!.fileName, 'sbom-a-b-000000000000.cdx.json')
  assert.equal(documents[65]!.fileName, `sbom-a-b-${digests[65]!.replace(':', '-')}.cdx.json`)
  assert.match(reasonOf(documents[63]!)!, /no SBOM of this image/)
  assert.match(reasonOf(documents[64]!)!, /more images than the 64/)
  assert.match(reasonOf(documents[65]!)!, /more images than the 64/)
})
