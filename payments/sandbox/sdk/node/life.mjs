// The life of a subscription, told to the current stripe-node. The sandbox's address,
// key and the address of this program's webhooks come from the environment; each
// webhook is a line of standard input, as {"signature", "body"}.
import assert from 'node:assert/strict'
import { createInterface } from 'node:readline'
import Stripe from 'stripe'

const { SANDBOX_HOST, SANDBOX_PORT, SANDBOX_KEY, RECEIVER } = process.env
const stripe = new Stripe(SANDBOX_KEY, { host: SANDBOX_HOST, port: SANDBOX_PORT, protocol: 'http', maxNetworkRetries: 0, telemetry: false })
const input = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
const ask = async (question) => {
  console.log(JSON.stringify(question))
  return JSON.parse((await input.next()).value)
}

const endpoint = await stripe.webhookEndpoints.create({ url: RECEIVER, enabled_events: ['*'] })
const customer = await stripe.customers.create({ email: 'ada@example.com', metadata: { user: '42' } })
const method = await stripe.paymentMethods.attach('pm_card_visa', { customer: customer.id })
await stripe.customers.update(customer.id, { invoice_settings: { default_payment_method: method.id } })
const product = await stripe.products.create({ name: 'Pro' })
const price = (unit_amount) => stripe.prices.create({ product: product.id, currency: 'usd', unit_amount, recurring: { interval: 'month' } })
const [small, big] = [await price(2900), await price(9900)]

const open = await stripe.checkout.sessions.create({
  mode: 'subscription', customer: customer.id, success_url: 'http://shop.test/thanks', line_items: [{ price: small.id, quantity: 1 }],
})
await ask({ pay: open.url })
const session = await stripe.checkout.sessions.retrieve(open.id, { expand: ['subscription.latest_invoice'] })
assert.equal(session.payment_status, 'paid')
assert.equal(session.subscription.status, 'active')
assert.equal(session.subscription.latest_invoice.amount_paid, 2900)
assert.equal(session.lastResponse.headers['stripe-version'], '2024-06-20')

const subscription = session.subscription
const upgraded = await stripe.subscriptions.update(subscription.id, {
  items: [{ id: subscription.items.data[0].id, price: big.id }],
  proration_behavior: 'always_invoice', payment_behavior: 'error_if_incomplete', expand: ['latest_invoice'],
})
assert.equal(upgraded.items.data[0].price.id, big.id)
assert.ok(upgraded.latest_invoice.amount_paid >= 6900 && upgraded.latest_invoice.amount_paid <= 7000)
assert.equal((await stripe.subscriptions.cancel(subscription.id)).status, 'canceled')
for await (const charge of stripe.charges.list({ customer: customer.id })) {
  assert.equal((await stripe.refunds.create({ charge: charge.id })).amount, charge.amount)
}
await assert.rejects(stripe.customers.create({ email: 'nobody' }), { code: 'email_invalid' })

const { webhooks } = await ask({ webhooks: true })
const types = webhooks.map(({ signature, body }) => {
  assert.throws(() => stripe.webhooks.constructEvent(body + ' ', signature, endpoint.secret))
  return stripe.webhooks.constructEvent(body, signature, endpoint.secret).type
})
for (const type of [
  'customer.created', 'payment_method.attached', 'checkout.session.completed', 'customer.subscription.created', 'invoice.paid', 'invoice.payment_succeeded',
  'payment_intent.succeeded', 'charge.succeeded', 'customer.subscription.updated', 'customer.subscription.deleted', 'charge.refunded',
]) assert.ok(types.includes(type), `no webhook says ${type}`)
console.log(JSON.stringify({ done: true }))
