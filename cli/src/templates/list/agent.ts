/** Adds the tax to the prices of an order. */
export default function agent({ prices }: { prices: number[] }) {
  const gross = prices.filter((price) => price > 0).map(withTax)
  return { gross, count: gross.length }
}

function withTax(price: number) {
  return price * 1.25
}
