package web

import "purser/tenancy"

// catalogRoutes are the pages of the catalog. Objects are edited
// below their key, because "new" is a valid key too.
func (s *Site) catalogRoutes() []route {
	const app = appPrefix
	return []route{
		get(app+"/credits", tenancy.CreditsRead, s.credits),
		get(app+"/credits/new", tenancy.CreditsWrite, s.newCredit),
		post(app+"/credits/new", tenancy.CreditsWrite, s.createCredit),
		get(app+"/credits/{key}/edit", tenancy.CreditsRead, s.editCredit),
		post(app+"/credits/{key}/edit", tenancy.CreditsWrite, s.updateCredit),

		get(app+"/features", tenancy.FeaturesRead, s.features),
		get(app+"/features/new", tenancy.FeaturesWrite, s.newFeature),
		post(app+"/features/new", tenancy.FeaturesWrite, s.createFeature),
		get(app+"/features/{key}/edit", tenancy.FeaturesRead, s.editFeature),
		post(app+"/features/{key}/edit", tenancy.FeaturesWrite, s.updateFeature),

		get(app+"/plans", tenancy.PlansRead, s.plans),
		get(app+"/plans/new", tenancy.PlansWrite, s.newPlan),
		post(app+"/plans/new", tenancy.PlansWrite, s.createPlan),
		get(app+"/plans/{key}/view", tenancy.PlansRead, s.viewPlan),
		get(app+"/plans/{key}/edit", tenancy.PlansRead, s.editPlan),
		post(app+"/plans/{key}/edit", tenancy.PlansWrite, s.updatePlan),
		post(app+"/plans/{key}/sync", tenancy.PlansWrite, s.retrySync),

		get(app+"/catalog/copy", tenancy.PlansWrite, s.copyPage),
		post(app+"/catalog/copy", tenancy.PlansWrite, s.copyCatalog),
	}
}
