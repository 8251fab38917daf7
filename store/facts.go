package store

import (
	"strconv"

	"purser/billing"
	"purser/keys"
	"purser/metering"
	"purser/tenancy/audit"
)

// What the audit log tells of each thing that people change by hand. A key's
// hash is left out, which tells a reader nothing; so are a provider's secrets.

func factsOfKey(k keys.APIKey) audit.Fields {
	facts := audit.Fields{
		"name":        k.Name,
		"preset":      string(k.Preset),
		"permissions": k.Permissions.String(),
		"secret":      k.Masked(),
		"revoked":     strconv.FormatBool(k.Revoked),
	}
	for name, at := range map[string]int64{"expiresAt": k.ExpiresAt, "revokedAt": k.RevokedAt} {
		if at != 0 {
			facts[name] = strconv.FormatInt(at, 10)
		}
	}
	return facts
}

func factsOfCredit(c metering.Credit) audit.Fields {
	return audit.Fields{"name": c.Name, "unit": c.Unit, "revision": strconv.FormatInt(c.Revision, 10)}
}

func factsOfFeature(f metering.Feature) audit.Fields {
	return audit.Fields{
		"name":                f.Name,
		"unit":                f.Unit,
		"creditKey":           f.CreditKey,
		"costNanocredits":     f.Cost.String(),
		"quantityPerUnit":     strconv.FormatInt(f.QuantityPerUnit, 10),
		"pricingMode":         string(f.PricingMode),
		"deduplicationPeriod": string(f.Deduplication),
		"revision":            strconv.FormatInt(f.Revision, 10),
	}
}

func factsOfPlan(p billing.Plan) audit.Fields {
	return audit.Fields{
		"name":               p.Name,
		"price":              billing.FormatMoney(p.AmountCents, p.Currency),
		"interval":           string(p.Interval),
		"featureLimits":      billing.LimitsText(p.Limits),
		"creditGrants":       billing.GrantsText(p.Grants),
		"featureMultipliers": billing.MultipliersText(p.Multipliers),
		"topupsEnabled":      strconv.FormatBool(p.TopupsEnabled),
		"active":             strconv.FormatBool(p.Active),
		"revision":           strconv.FormatInt(p.Revision, 10),
	}
}
