package sandbox

import (
	"errors"
	"slices"
	"strings"

	"purser/payments/sandbox/form"
)

// unsupported distinguishes a Stripe parameter that the sandbox does not support from
// one that Stripe does not have either.
func unsupported(path string, err error) error {
	problem, ok := errors.AsType[*form.Problem](err)
	if !ok || problem.Code != "parameter_unknown" {
		return err
	}
	for resource, names := range stripeParameters {
		if path != resource && !strings.HasPrefix(path, resource+"/") {
			continue
		}
		// Stripe too accepts most price parameters at creation only.
		if resource == "prices" && path != resource {
			continue
		}
		known := strings.Fields(names)
		steps := strings.FieldsFunc(problem.Param, func(r rune) bool { return r == '[' || r == ']' })
		named := func(step string) bool { return isNumber(step) || slices.Contains(known, step) }
		if !slices.ContainsFunc(steps, func(step string) bool { return !named(step) }) {
			return &form.Problem{Code: "parameter_unsupported", Param: problem.Param, Message: "The sandbox does not support the parameter " + problem.Param + ", which Stripe has."}
		}
	}
	return err
}

func isNumber(step string) bool { return step != "" && strings.Trim(step, "0123456789") == "" }

// stripeParameters are the parameter names, at any depth, of each resource in stripe-go
// v79.
var stripeParameters = map[string]string{
	"products": `
		active created currency currency_options custom_unit_amount default_price default_price_data description enabled expand flat_amount
		flat_amount_decimal height id ids images interval interval_count length marketing_features maximum metadata minimum name package_dimensions page
		preset recurring shippable statement_descriptor tax_behavior tax_code tiers type unit_amount unit_amount_decimal unit_label up_to url weight width`,
	"prices": `
		active aggregate_usage billing_scheme created currency currency_options custom_unit_amount divide_by enabled expand flat_amount flat_amount_decimal id
		interval interval_count lookup_key lookup_keys maximum metadata meter minimum name nickname page preset product product_data recurring round
		statement_descriptor tax_behavior tax_code tiers tiers_mode transfer_lookup_key transform_quantity trial_period_days type unit_amount
		unit_amount_decimal unit_label up_to usage_type`,
	"customers": `
		address allow_redisplay amount_tax_display balance bank_transfer cash_balance country coupon created currency custom_fields default_payment_method
		default_source description email eu_bank_transfer expand footer funding_type invoice_prefix invoice_settings ip_address metadata name
		next_invoice_sequence page payment_method phone preferred_locales promotion_code reconciliation_mode rendering_options requested_address_types
		settings shipping source tax tax_exempt tax_id_data template test_clock type validate validate_location value`,
	"checkout/sessions": `
		account account_tax_ids acss_debit address adjustable_quantity affirm after_expiration after_submit afterpay_clearpay alipay allow_promotion_codes
		allow_redisplay allow_redisplay_filters allowed_countries amazon_pay amount amount_percent amount_tax_display app_id application_fee_amount
		application_fee_percent au_becs_debit automatic_tax bacs_debit bancontact bank_transfer billing_address_collection billing_cycle_anchor boleto
		cancel_url capture_method card cashapp client client_reference_id consent_collection country coupon created currency currency_options custom
		custom_fields custom_mandate_url custom_text customer customer_balance customer_creation customer_details customer_email customer_update default_for
		default_tax_rates default_value delivery_estimate description destination discounts display_name dropdown dynamic_tax_rates email enabled end_behavior
		eps eu_bank_transfer expand expires_after_days expires_after_seconds expires_at financial_connections fixed_amount footer fpx funding_type giropay
		grabpay ideal images installments interval interval_count interval_description invoice_creation invoice_data invoice_settings issuer key klarna
		konbini label liability line_items link locale mandate_options maximum maximum_length message metadata minimum minimum_length missing_payment_method
		mobilepay mode multibanco name numeric on_behalf_of optional options oxxo p24 payment_intent payment_intent_data payment_link
		payment_method_collection payment_method_configuration payment_method_data payment_method_options payment_method_reuse_agreement payment_method_save
		payment_method_types payment_schedule paynow paypal permissions phone_number_collection pix position preferred_locale prefetch price price_data
		product product_data promotion_code promotions proration_behavior quantity receipt_email recovery recurring redirect_on_completion reference
		rendering_options request_three_d_secure requested_address_types required return_url revolut_pay risk_correlation_id saved_payment_method_options
		sepa_debit setup_future_usage setup_intent_data shipping shipping_address shipping_address_collection shipping_options shipping_rate
		shipping_rate_data sofort statement_descriptor statement_descriptor_suffix statement_descriptor_suffix_kana statement_descriptor_suffix_kanji status
		submit submit_type subscription subscription_data success_url swish tax_behavior tax_code tax_id_collection tax_rates terms_of_service
		terms_of_service_acceptance text tos_shown_and_accepted transaction_type transfer_data transfer_group trial_end trial_period_days trial_settings type
		ui_mode unit unit_amount unit_amount_decimal us_bank_account value verification_method wechat_pay`,
	"subscriptions": `
		account account_subcategories account_tax_ids acss_debit add_invoice_items amount amount_gte amount_percent amount_type application_fee_percent
		automatic_tax backdate_start_date bancontact bank_transfer behavior billing_cycle_anchor billing_cycle_anchor_config billing_thresholds cancel_at
		cancel_at_period_end cancellation_details card clear_usage collection_method comment country coupon created currency current_period_end
		current_period_start customer customer_balance day_of_month days_until_due default_payment_method default_source default_tax_rates deleted description
		destination discount discounts enabled end_behavior eu_bank_transfer expand feedback filters financial_connections funding_type hour id interval
		interval_count invoice_now invoice_settings issuer items konbini liability mandate_options metadata minute missing_payment_method month network
		off_session on_behalf_of page pause_collection payment_behavior payment_method_options payment_method_types payment_settings
		pending_invoice_item_interval permissions plan preferred_language prefetch price price_data promotion_code prorate proration_behavior proration_date
		quantity request_three_d_secure reset_billing_cycle_anchor resumes_at save_default_payment_method second sepa_debit status tax_rates test_clock
		transaction_type transfer_data trial_end trial_from_plan trial_period_days trial_settings type us_bank_account verification_method`,
	"subscription_schedules": `
		account account_tax_ids add_invoice_items application_fee_percent automatic_tax billing_cycle_anchor billing_thresholds canceled_at collection_method
		completed_at coupon created currency customer days_until_due default_payment_method default_settings default_tax_rates description discount discounts
		enabled end_behavior end_date expand from_subscription invoice_now invoice_settings issuer items iterations liability metadata on_behalf_of phases
		plan preserve_cancel_date price price_data promotion_code prorate proration_behavior quantity released_at scheduled start_date tax_rates transfer_data
		trial trial_end type`,
	"invoices": `
		account account_subcategories account_tax_ids acss_debit action add_invoice_items address amount amount_gte amount_percent amount_tax_display
		application_fee_amount application_fee_percent auto_advance automatic_tax bancontact bank_transfer behavior billing_cycle_anchor billing_thresholds
		cancel_at cancel_at_period_end cancel_now card clear_usage collection_method count country coupon created currency currency_options custom_fields
		customer customer_balance customer_details days_until_due default_mandate default_payment_method default_source default_tax_rates deleted
		delivery_estimate description destination discount discountable discounts display_name due_date effective_at enabled end end_behavior end_date
		eu_bank_transfer expand filters financial_connections fixed_amount footer forgive from_invoice funding_type id images inclusive installments interval
		interval_count invoice invoice_item invoice_items invoice_metadata invoice_settings invoiceitem ip_address issuer items iterations jurisdiction
		konbini liability lines mandate mandate_options maximum metadata minimum name number off_session on_behalf_of page page_size paid_out_of_band
		payment_method payment_method_options payment_method_types payment_settings pdf pending_invoice_items_behavior percentage period permissions phases
		phone plan preferred_language prefetch preview_mode price price_data product product_data promotion_code proration_behavior proration_date quantity
		recurring rendering request_three_d_secure reset_billing_cycle_anchor resume_at schedule schedule_details sepa_debit shipping shipping_cost
		shipping_details shipping_rate shipping_rate_data source start start_date state statement_descriptor status subscription
		subscription_billing_cycle_anchor subscription_cancel_at subscription_cancel_at_period_end subscription_cancel_now subscription_default_tax_rates
		subscription_details subscription_items subscription_proration_behavior subscription_proration_date subscription_resume_at subscription_start_date
		subscription_trial_end subscription_trial_from_plan tax tax_amounts tax_behavior tax_code tax_exempt tax_ids tax_rate_data tax_rates tax_type
		taxable_amount template template_version transaction_type transfer_data trial trial_end type unit unit_amount unit_amount_decimal us_bank_account
		usage_gte value verification_method`,
	"payment_methods": `
		account_holder_type account_number account_type acss_debit address affirm afterpay_clearpay alipay allow_redisplay amazon_pay au_becs_debit bacs_debit
		bancontact bank billing_details blik boleto bsb_number card cashapp country customer customer_balance cvc day dob email eps exp_month exp_year expand
		financial_connections_account fpx giropay grabpay iban ideal institution_number interac_present klarna konbini link metadata mobilepay month
		multibanco name networks number oxxo p24 payment_method paynow paypal phone pix preferred promptpay radar_options revolut_pay routing_number
		sepa_debit session sofort sort_code swish tax_id token transit_number twint type us_bank_account wechat_pay year zip`,
	"payment_intents": `
		accepted_at account_subcategories acss_debit address affirm afterpay_clearpay alipay allow_redirects allow_redisplay amazon_pay amount
		amount_to_capture amount_type amounts app_id application_fee_amount ares_trans_status au_becs_debit automatic_payment_methods bacs_debit bancontact
		bank_transfer billing_details blik boleto cancellation_reason capture_method card card_present cartes_bancaires cashapp cb_avalgo cb_exemption
		cb_score client client_secret code collection_method confirm confirmation_method confirmation_number confirmation_token count country created
		cryptogram currency custom_mandate_url customer customer_acceptance customer_balance cvc_token description descriptor_code destination
		electronic_commerce_indicator email enabled end_date eps error_on_requires_action eu_bank_transfer exemption_indicator expand expires_after_days
		expires_after_seconds expires_at filters final_capture financial_connections fpx funding_type giropay grabpay ideal installments interac_present
		interval interval_count interval_description ip_address klarna konbini link mandate mandate_data mandate_options metadata mobilepay moto multibanco
		name network network_options networks off_session offline on_behalf_of online oxxo p24 page payment_method payment_method_configuration
		payment_method_data payment_method_options payment_method_types payment_schedule paynow paypal permissions persistent_token phone pix plan
		preferred_language preferred_locale preferred_settlement_speed prefetch product_description promptpay radar_options receipt_email reference
		request_extended_authorization request_incremental_authorization request_incremental_authorization_support request_multicapture request_overcapture
		request_three_d_secure requested requested_address_types requested_priority requestor_challenge_indicator require_cvc_recollection return_url
		revolut_pay risk_correlation_id routing sepa_debit session setup_future_usage shipping sofort start_date statement_descriptor
		statement_descriptor_suffix statement_descriptor_suffix_kana statement_descriptor_suffix_kanji supported_types swish three_d_secure
		tos_shown_and_accepted transaction_id transaction_type transfer_data transfer_group twint type us_bank_account use_stripe_sdk user_agent
		verification_method version wechat_pay zip`,
	"charges": `
		account amount application_fee application_fee_amount capture created currency customer customer_reference description destination discount_amount
		exchange_rate expand fraud_details level3 line_items merchant_reference metadata on_behalf_of page payment_intent product_code product_description
		quantity radar_options receipt_email session shipping shipping_address_zip shipping_amount shipping_from_zip statement_descriptor
		statement_descriptor_suffix tax_amount transfer_data transfer_group unit_cost user_report`,
	"refunds": `
		amount charge created currency customer expand instructions_email metadata origin payment_intent reason refund_application_fee reverse_transfer`,
	"disputes": `
		access_activity_log billing_address cancellation_policy cancellation_policy_disclosure cancellation_rebuttal charge created customer_communication
		customer_email_address customer_name customer_purchase_ip customer_signature duplicate_charge_documentation duplicate_charge_explanation
		duplicate_charge_id evidence expand metadata payment_intent product_description receipt refund_policy refund_policy_disclosure
		refund_refusal_explanation service_date service_documentation shipping_address shipping_carrier shipping_date shipping_documentation
		shipping_tracking_number submit uncategorized_file uncategorized_text`,
	"events": `
		created delivery_success expand type types`,
	"billing_portal/sessions": `
		after_completion configuration coupon coupon_offer custom_message customer discounts expand flow_data hosted_confirmation id items locale on_behalf_of
		price promotion_code quantity redirect retention return_url subscription subscription_cancel subscription_update subscription_update_confirm type`,
	"billing_portal/configurations": `
		active allowed_updates business_profile cancellation_reason customer_update default_allowed_updates default_return_url enabled expand features
		headline invoice_history is_default login_page metadata mode options payment_method_update prices privacy_policy_url product products
		proration_behavior subscription_cancel subscription_update terms_of_service_url`,
	"webhook_endpoints": `
		api_version connect description disabled enabled_events expand metadata url`,
	"test_helpers/test_clocks": `
		expand frozen_time name`,
}
