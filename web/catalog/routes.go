package catalog

import (
	"purser/ids"
	"purser/tenancy"
	"purser/web/site"
)

// Routes are the pages of the catalog. Objects are edited
// below their key, because "new" is a valid key too.
func (s *Pages) Routes() []site.Route {
	const app = site.AppPrefix
	return []site.Route{
		site.Get(app+"/credits", tenancy.CreditsRead, site.With(site.Before(ids.Credit), s.credits)),
		site.Get(app+"/credits/new", tenancy.CreditsWrite, s.newCredit),
		site.Post(app+"/credits/new", tenancy.CreditsWrite, s.createCredit),
		site.Get(app+"/credits/{key}/edit", tenancy.CreditsRead, site.With(pathCredit, s.editCredit)),
		site.Post(app+"/credits/{key}/edit", tenancy.CreditsWrite, site.With(pathCredit, s.updateCredit)),

		site.Get(app+"/features", tenancy.FeaturesRead, site.With(site.Before(ids.Feature), s.features)),
		site.Get(app+"/features/new", tenancy.FeaturesWrite, s.newFeature),
		site.Post(app+"/features/new", tenancy.FeaturesWrite, s.createFeature),
		site.Get(app+"/features/{key}/edit", tenancy.FeaturesRead, site.With(pathFeature, s.editFeature)),
		site.Post(app+"/features/{key}/edit", tenancy.FeaturesWrite, site.With(pathFeature, s.updateFeature)),

		site.Get(app+"/plans", tenancy.PlansRead, site.With(site.Before(ids.Plan), s.plans)),
		site.Get(app+"/plans/new", tenancy.PlansWrite, s.newPlan),
		site.Post(app+"/plans/new", tenancy.PlansWrite, s.createPlan),
		site.Get(app+"/plans/{key}/view", tenancy.PlansRead, site.With(pathPlan, s.viewPlan)),
		site.Get(app+"/plans/{key}/edit", tenancy.PlansRead, site.With(pathPlan, s.editPlan)),
		site.Post(app+"/plans/{key}/edit", tenancy.PlansWrite, site.With(pathPlan, s.updatePlan)),
		site.Post(app+"/plans/{key}/sync", tenancy.PlansWrite, site.With(pathPlan, s.retrySync)),

		site.Get(app+"/catalog/copy", tenancy.PlansWrite, s.Comparison(s.copyPage)),
		site.Post(app+"/catalog/copy", tenancy.PlansWrite, s.Comparison(s.copyCatalog)),
	}
}
