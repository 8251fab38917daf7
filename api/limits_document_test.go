package api

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"purser/billing"
	"purser/metering"
	"purser/notify"
	"purser/store"
	"purser/store/notifications"
)

// documentLimits are the rules of the domain behind each limit of the document. A page is
// as long as its largest limit parameter, and is not listed here.
var documentLimits = map[string]any{
	"Key maxLength": metering.MaxKeyLength, "Key pattern": metering.KeyPattern,
	"Name maxLength": metering.MaxNameLength, "Unit maxLength": metering.MaxUnitLength,
	"Identity maxLength": metering.MaxIdentityLength, "EntityId maxLength": metering.MaxEntityIDLength,
	"EventId maxLength": metering.MaxEventIDLength, "FeatureName maxLength": metering.MaxFeatureLength,
	"IdempotencyKey maxLength": metering.MaxIdempotencyKeyLength, "Deposit/properties/idempotencyKey maxLength": metering.MaxIdempotencyKeyLength,
	"Nanocredits maxLength": metering.MaxAmountLength, "Nanocredits pattern": metering.AmountPattern,
	"Balance/properties/debtNanocredits pattern": metering.AmountPattern,
	"SignedNanocredits maxLength":                metering.MaxAmountLength + 1, "SignedNanocredits pattern": strings.Replace(metering.AmountPattern, "|", "|-?", 1),
	"Wallet/properties/balances maxItems": metering.MaxBalances, "BalancesAt/properties/balances maxItems": metering.MaxBalances,
	"PositiveNanocredits maxLength": metering.MaxAmountLength, "PositiveNanocredits pattern": strings.NewReplacer("(0|", "", ")", "").Replace(metering.AmountPattern),
	"Reversal/properties/reason maxLength": store.MaxReversalReason, "NewReversal/properties/reason maxLength": store.MaxReversalReason,
	"Properties maxProperties": metering.MaxProperties, "Properties x-max-bytes": metering.MaxPropertyBytes,
	"Properties/propertyNames maxLength": metering.MaxPropertyNameLength, "Properties/propertyNames pattern": metering.PropertyNamePattern,
	"Properties/additionalProperties maxLength": metering.MaxPropertyValueLength,

	"Erasure/properties/reason maxLength": store.MaxErasureReason, "NewErasure/properties/reason maxLength": store.MaxErasureReason,
	"Transfer/properties/reason maxLength": metering.MaxTransferReason, "NewTransfer/properties/reason maxLength": metering.MaxTransferReason,
	"Explanation/properties/gates maxItems": 10,

	"Currency pattern":                                    billing.CurrencyPattern,
	"FeatureLimits maxItems":                              billing.MaxPlanItems,
	"CreditGrants maxItems":                               billing.MaxPlanItems,
	"FeatureMultipliers maxItems":                         billing.MaxPlanItems,
	"PlanCreditGrants maxItems":                           billing.MaxPlanItems,
	"PlanFeatureMultipliers maxItems":                     billing.MaxPlanItems,
	"Subscription/properties/featureLimits maxItems":      billing.MaxPlanItems,
	"SubscriptionPreview/properties/grants maxItems":      billing.MaxPlanItems,
	"SubscriptionPreview/properties/limits maxItems":      2 * billing.MaxPlanItems,
	"SubscriptionPreview/properties/multipliers maxItems": 2 * billing.MaxPlanItems,

	"NotificationId maxLength": 30, "NotificationId pattern": idPattern("ntf"), "WebhookEndpointId maxLength": 30, "WebhookEndpointId pattern": idPattern("whe"),
	"NotificationTypes maxItems":                   notify.MaxTypes,
	"EndpointDescription maxLength":                notify.MaxDescription,
	"WebhookEndpointList/properties/data maxItems": notify.MaxEndpoints, "Feed/properties/data maxItems": notifications.MaxPage,
	"DeliveryAttemptList/properties/data maxItems":              maxAttempts,
	"/components/parameters/NotificationTypes/schema maxLength": 2000,
	"AlertThresholds maxItems":                                  metering.MaxAlertThresholds,
	"AlertPercents maxItems":                                    metering.MaxAlertThresholds,
	"AlertRules/properties/data maxItems":                       metering.MaxAlertRules,

	"Catalog/properties/credits maxItems": billing.MaxCatalogItems, "Catalog/properties/features maxItems": billing.MaxCatalogItems, "Catalog/properties/plans maxItems": billing.MaxCatalogItems,
	// Every item of a draft, and every plan that it does not have.
	"CatalogComparison/properties/changes maxItems": 4 * billing.MaxCatalogItems,

	"TotalNanocredits maxLength": 38, "TotalNanocredits pattern": metering.AmountPattern, // numeric(38,0)
	"TotalQuantity maxLength": 38, "TotalQuantity pattern": metering.AmountPattern,

	"/paths//v1/usage/get/parameters/3/schema maxLength": len("feature,property:") + metering.MaxPropertyNameLength,
	"/paths//v1/usage/get/parameters/3/schema pattern":   `^(feature|(feature,)?(identity|key|entity|property:[A-Za-z0-9_-]{1,40}))$`,

	// The document alone decides these.
	"/paths//v1/usage/get/parameters/6/schema maxLength": 64,
	"CatalogVersion maxLength":                           32, "CatalogVersion pattern": "^[0-9a-f]{32}$", "CatalogChange/properties/fields maxItems": 10,
	"EventBatch/properties/events maxItems": 1000, "EventGroup/properties/events maxItems": 20,
	"Event/properties/reversals maxItems":            100,
	"WalletExport/properties/subscriptions maxItems": 100, "WalletExport/properties/failedRequests maxItems": 1000,
	"WalletExport/properties/denials maxItems": 1000,
	"WebAddress maxLength":                     2048, "WebAddress pattern": `^[hH][tT][tT][pP][sS]?://[a-zA-Z0-9\[][!-\[\]-~]*$`,
	"NextCursor maxLength": 4096, "/components/parameters/Cursor/schema maxLength": 4096, "/components/headers/RequestId/schema maxLength": 200,
}

// idPattern is the form of ids with a prefix.
func idPattern(prefix string) string { return "^" + prefix + "_[0-7][0-9a-hjkmnp-tv-z]{25}$" }

func TestTheDocumentHasTheLimitsOfTheDomain(t *testing.T) {
	t.Parallel()
	root := expanded(t)
	seen := map[string]bool{}
	check := func(at, keyword string, value any) {
		name := strings.TrimPrefix(at, "/components/schemas/") + " " + keyword
		if page, isPage := strings.CutSuffix(name, "Page/properties/data maxItems"); isPage {
			parameter := "Limit"
			if page == "Wallet" || page == "Usage" {
				parameter = page + "Limit"
			}
			most := root.Object("components").Object("parameters").Object(parameter).Object("schema")["maximum"]
			if value != most {
				t.Errorf("%s is %v, and %s at most %v", name, value, parameter, most)
			}
			return
		}
		seen[name] = true
		if want, listed := documentLimits[name]; !listed || fmt.Sprint(want) != fmt.Sprint(value) {
			t.Errorf("%s is %v, want %v: name its constant in this test", name, value, want)
		}
	}
	var walk func(at string, node any)
	walk = func(at string, node any) {
		switch node := node.(type) {
		case []any:
			for i, item := range node {
				walk(fmt.Sprintf("%s/%d", at, i), item)
			}
		case input:
			for _, keyword := range []string{"maxLength", "pattern", "maxItems", "maxProperties", "x-max-bytes"} {
				if value := node[keyword]; value != nil && kindOf(value) != kindObject { // an object is a property of that name
					check(at, keyword, value)
				}
			}
			for _, name := range slices.Sorted(maps.Keys(node)) {
				if name != "example" && name != "examples" {
					walk(at+"/"+name, node[name])
				}
			}
		}
	}
	walk("", root)
	for name := range documentLimits {
		if !seen[name] {
			t.Errorf("%s is not in the document", name)
		}
	}
}
