import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { refusalOf } from '../../../wrangler-free-deploy/console/pages/policy/text/refusal.ts'

describe('a refusal to make a text', () => {
  it('of a network policy has a reason for each workload', () => {
    const body =
      'refused: shop/Deployment/api: observed since never, which is less than 7 days\n' +
      'refused: shop/Deployment/web: the agent of node a is silent\n' +
      'a policy would cut off what was not seen\n' +
      'wait until more was observed, or lower min_days, or ask for it as it is with acknowledgePartial=true\n'
    assert.deepEqual(refusalOf(body), {
      about: '',
      reasons: [
        'shop/Deployment/api: observed since never, which is less than 7 days',
        'shop/Deployment/web: the agent of node a is silent',
      ],
      advice: ['a policy would cut off what was not seen', 'wait until more was observed, or lower min_days'],
      acknowledge: 'acknowledgePartial',
    })
  })

  it('without a way around it offers none', () => {
    const body = 'no labels select shop/Deployment/api alone: shop/Deployment/web has them, too\n'
    const { reasons, acknowledge } = refusalOf(body)
    assert.deepEqual([reasons, acknowledge], [[body.trim()], null])
  })

  it('of an image policy has a reason for each repository', () => {
    const body =
      'an enforcing policy would not cover every running image: r/a (unsigned); r/b (not checked). ' +
      'acknowledgePartial=true generates it all the same'
    assert.deepEqual(refusalOf(body), {
      about: 'an enforcing policy would not cover every running image',
      reasons: ['r/a (unsigned)', 'r/b (not checked)'],
      advice: [],
      acknowledge: 'acknowledgePartial',
    })
  })

  it('of a policy that binds other namespaces names the other parameter', () => {
    const body =
      'an enforcing ClusterImagePolicy binds the whole cluster, and images of the same names run in namespaces a and ' +
      'b, too. acknowledgeClusterWide=true generates it all the same'
    assert.deepEqual(refusalOf(body), {
      about: '',
      reasons: [
        'an enforcing ClusterImagePolicy binds the whole cluster, and images of the same names run in namespaces a ' +
          'and b, too',
      ],
      advice: [],
      acknowledge: 'acknowledgeClusterWide',
    })
  })

  it('of a seccomp profile keeps the advice', () => {
    const body =
      'refused: the capture of shop Deployment/api is partial\n' +
      'asked for: defaultAction SCMP_ACT_ERRNO\n' +
      'or export with defaultAction SCMP_ACT_LOG, which blocks nothing\n' +
      'or export it as it is with acknowledgePartial=true'
    assert.deepEqual(refusalOf(body).advice, [
      'asked for: defaultAction SCMP_ACT_ERRNO',
      'or export with defaultAction SCMP_ACT_LOG, which blocks nothing',
    ])
  })

  it('of an export has a reason for each artifact', () => {
    const body = JSON.stringify({
      error: 'export_refused',
      message:
        'not complete: export with mode=audit, leave them out, or take them as they are with acknowledgePartial=true',
      refusals: [{ artifact: 'networkpolicy', reason: 'no flows' }],
    })
    assert.deepEqual(refusalOf(body), {
      about: '',
      reasons: ['networkpolicy: no flows'],
      advice: ['not complete: export with mode=audit, leave them out'],
      acknowledge: 'acknowledgePartial',
    })
  })
})
