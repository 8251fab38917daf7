package catalog

import (
	"purser/tenancy"
	"purser/web/site"
)

// Routes are the pages of the catalog. Objects are edited
// below their key, because "new" is a valid key too.
func (s *Pages) Routes() []site.Route {
	const app = site.AppPrefix
	return []site.Route{
		site.Get(app+"/credits", tenancy.CreditsRead, s.credits),
		site.Get(app+"/credits/new", tenancy.CreditsWrite, s.newCredit),
		site.Post(app+"/credits/new", tenancy.CreditsWrite, s.createCredit),
		site.Get(app+"/credits/{key}/edit", tenancy.CreditsRead, s.editCredit),
		site.Post(app+"/credits/{key}/edit", tenancy.CreditsWrite, s.updateCredit),

		site.Get(app+"/features", tenancy.FeaturesRead, s.features),
		site.Get(app+"/features/new", tenancy.FeaturesWrite, s.newFeature),
		site.Post(app+"/features/new", tenancy.FeaturesWrite, s.createFeature),
		site.Get(app+"/features/{key}/edit", tenancy.FeaturesRead, s.editFeature),
		site.Post(app+"/features/{key}/edit", tenancy.FeaturesWrite, s.updateFeature),

		site.Get(app+"/plans", tenancy.PlansRead, s.plans),
		site.Get(app+"/plans/new", tenancy.PlansWrite, s.newPlan),
		site.Post(app+"/plans/new", tenancy.PlansWrite, s.createPlan),
		site.Get(app+"/plans/{key}/view", tenancy.PlansRead, s.viewPlan),
		site.Get(app+"/plans/{key}/edit", tenancy.PlansRead, s.editPlan),
		site.Post(app+"/plans/{key}/edit", tenancy.PlansWrite, s.updatePlan),
		site.Post(app+"/plans/{key}/sync", tenancy.PlansWrite, s.retrySync),

		site.Get(app+"/catalog/copy", tenancy.PlansWrite, s.copyPage),
		site.Post(app+"/catalog/copy", tenancy.PlansWrite, s.copyCatalog),
	}
}
