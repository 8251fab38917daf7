package sandbox

import (
	_ "embed"
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
	for resource, known := range stripeParameters {
		if path != resource && !strings.HasPrefix(path, resource+"/") {
			continue
		}
		// Stripe too accepts most price parameters at creation only.
		if resource == "prices" && path != resource {
			continue
		}
		steps := strings.FieldsFunc(problem.Param, func(r rune) bool { return r == '[' || r == ']' })
		named := func(step string) bool { return isNumber(step) || slices.Contains(known, step) }
		if !slices.ContainsFunc(steps, func(step string) bool { return !named(step) }) {
			return &form.Problem{Code: "parameter_unsupported", Param: problem.Param, Message: "The sandbox does not support the parameter " + problem.Param + ", which Stripe has."}
		}
	}
	return err
}

func isNumber(step string) bool { return step != "" && strings.Trim(step, "0123456789") == "" }

//go:embed stripe_parameters.txt
var stripeParameterLines string

// stripeParameters are the parameter names, at any depth, of each resource in stripe-go
// v79.
var stripeParameters = readStripeParameters(stripeParameterLines)

// readStripeParameters reads a resource and its parameters from each line.
func readStripeParameters(lines string) map[string][]string {
	resources := map[string][]string{}
	for line := range strings.Lines(lines) {
		resource, names, _ := strings.Cut(line, ":")
		resources[resource] = strings.Fields(names)
	}
	return resources
}
