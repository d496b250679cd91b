/** What policies allow, leave out and say, one decision of docs/contract.md#network-policies each. */
import assert from 'node:assert/strict'
import test from 'node:test'
import type { Facts } from '../../lib/policies/facts.ts'
import type { MakeOptions } from '../../lib/policies/make/policy.ts'
import { make, pods, seen, service } from './generate-facts.ts'

const WEB = pods('shop/Deployment/web', { app: 'web' }, { selectorLabels: { app: 'web' } })
const API = pods('shop/Deployment/api', { app: 'api' }, { selectorLabels: { app: 'api' }, namedPorts: { http: 8080 } })
/** A resolver, so that the usual rule is not added. */
const RESOLVER = seen('shop/Deployment/web > external 9.9.9.9 53/UDP')

interface Spec {
  readonly ingress?: readonly object[]
  readonly egress?: readonly object[]
}

/** The policy of `shop/Deployment/web`. Rules for `RESOLVER` are left out. */
async function web(facts: Partial<Facts>, options: Partial<MakeOptions> = {}) {
  const connections = [...(facts.connections ?? []), RESOLVER]
  const { manifest, notes, gaps } = await make(
    'shop/Deployment/web',
    { pods: [WEB, API], ...facts, connections },
    options,
  )
  const { ingress = [], egress = [] } = manifest.spec as Spec
  return { ingress, egress: egress.filter((one) => !JSON.stringify(one).includes('9.9.9.9/32')), notes, gaps }
}
const to = (text: string) => seen(`shop/Deployment/web > ${text}`)
const from = (text: string) => {
  const [end, port] = [text.slice(0, text.lastIndexOf(' ')), text.slice(text.lastIndexOf(' ') + 1)]
  return seen(`${end} > shop/Deployment/web ${port}`, { seenBy: 'to' })
}
const tcp = (port: number | string) => ({ protocol: 'TCP', port })

test('ends that nobody can name are left out, with the reason', async () => {
  const { ingress, egress, notes } = await web({
    services: [service('shop/api', { app: 'api' }, '80:8080')],
    connections: [
      ...[to('service shop/gone 80'), to('service shop/api 81'), to('pod shop/gone 80'), to('shop/Job/gone 80')],
      ...[to('external - 80'), to('external nowhere 80'), to('external 1.1.1.1 0'), to('external 1.1.1.1 80/ICMP')],
      ...[from('unresolved fe80::1%eth0 80'), to('external 1.1.1.1 99999')],
    ],
  })
  assert.deepEqual([...ingress, ...egress], [])
  assert.deepEqual(notes, [
    'LEFT OUT: egress to external 1.1.1.1: its port 0 is none',
    'LEFT OUT: egress to external 1.1.1.1: its port 99999 is none',
    'LEFT OUT: egress to external 1.1.1.1: no policy knows the protocol ICMP',
    'LEFT OUT: egress to external nowhere: its address is not known',
    'LEFT OUT: egress to external unknown: its address is not known',
    'LEFT OUT: egress to service shop/api: it has no port 81/TCP',
    'LEFT OUT: egress to service shop/gone: the service is not known any more',
    'LEFT OUT: egress to shop/Job/gone: no labels of its pods are known',
    'LEFT OUT: egress to shop/Pod/gone: no labels of its pods are known',
    'LEFT OUT: ingress from address fe80::1%eth0: its address is not known',
  ])
})

test('a peer whose pods are gone is known by the labels that they had', async () => {
  const gone = pods('shop/Deployment/gone', { app: 'gone', 'pod-template-hash': 'a' }, { isLiving: false })
  const { egress } = await web({ pods: [WEB, gone], connections: [to('shop/Deployment/gone 80')] })
  assert.deepEqual(egress, [{ to: [{ podSelector: { matchLabels: { app: 'gone' } } }], ports: [tcp(80)] }])
})

test('a pod without a workload is its own workload', async () => {
  const lone = pods('shop/Pod/lone', { app: 'lone' })
  const { egress } = await web({ pods: [WEB, lone], connections: [to('pod shop/lone 80')] })
  assert.deepEqual(egress, [{ to: [{ podSelector: { matchLabels: { app: 'lone' } } }], ports: [tcp(80)] }])
})

test('networks are never shorter than 8 bits: all addresses but private ones instead', async () => {
  const connections = Array.from({ length: 30 }, (_, i) => to(`external ${1 + i * 7}.1.1.1 443`))
  const { egress } = await web({ connections })
  const except = ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16']
  assert.deepEqual(egress, [{ to: [{ ipBlock: { cidr: '0.0.0.0/0', except } }], ports: [tcp(443)] }])
  const { egress: cilium } = await web({ connections }, { format: 'cilium' })
  assert.match(JSON.stringify(cilium), /"toCIDRSet":\[\{"cidr":"0\.0\.0\.0\/0","except":\["10\.0\.0\.0\/8"/)
})

test('four ephemeral ports of a peer are named, five are all ports of the protocol', async () => {
  const ports = (count: number) => Array.from({ length: count }, (_, i) => to(`shop/Deployment/api ${32_768 + i}`))
  const four = await web({ connections: [...ports(4), to('shop/Deployment/api 21')] })
  assert.deepEqual([JSON.stringify(four.egress).split('"port"').length - 1, four.notes], [5, []])
  const five = await web({ connections: [...ports(5), to('shop/Deployment/api 21'), to('shop/Deployment/api 53/UDP')] })
  assert.match(JSON.stringify(five.egress), /"ports":\[.*\{"protocol":"TCP"\}.*\]/)
  assert.match(JSON.stringify(five.egress), /\{"protocol":"UDP","port":53\}/)
  assert.doesNotMatch(JSON.stringify(five.egress), /"port":21/)
  assert.match(five.notes.join(), /5 ports from 32768 on were seen, so all ports of TCP are allowed/)
})

test('a peer that cannot be told from another one: a note names the other', async () => {
  const twins = ['blue', 'green'].map((name) => pods(`shop/Deployment/${name}`, { app: 'front' }))
  const { notes } = await web({ pods: [WEB, ...twins], connections: [to('shop/Deployment/blue 80')] })
  assert.deepEqual(notes, ['egress to shop/Deployment/blue: its labels also select the pods of shop/Deployment/green'])
})
