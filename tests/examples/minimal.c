#include <vkgemm/vkgemm.h>

// Called before vkCreateDevice. The device gets what vkgemm_requirements_extensions() and
// vkgemm_requirements_features() return. On failure the result is null; `error` has the message.
VkgemmRequirements* ask(VkInstance instance, VkPhysicalDevice gpu,
                        PFN_vkGetInstanceProcAddr get_instance_proc_addr, VkgemmError* error) {
  VkgemmRequirements* needs = NULL;
  vkgemm_requirements_query(instance, gpu, get_instance_proc_addr, &needs, error);
  return needs;
}

// Called once for each VkDevice. Afterwards the requirements may be destroyed.
VkgemmContext* make_context(VkInstance instance, VkPhysicalDevice gpu, VkDevice device,
                            PFN_vkGetInstanceProcAddr get_instance_proc_addr,
                            const VkgemmRequirements* needs, VkgemmError* error) {
  VkgemmContext* context = NULL;
  VkgemmContextCreateInfo info;
  vkgemm_context_create_info_init(&info, sizeof info);
  info.instance = instance;
  info.physical_device = gpu;
  info.device = device;
  info.get_instance_proc_addr = get_instance_proc_addr;
  vkgemm_requirements_extensions(needs, &info.enabled_extension_count, &info.enabled_extensions);
  vkgemm_requirements_features(needs, &info.enabled_features);
  vkgemm_context_create(&info, &context, error);
  return context;
}

// Called once for each shape: D = gelu(1.25 * A·B + 0.5 * C + bias). By default matrices are f16,
// row-major and contiguous, and the bias is f32.
VkgemmPlan* plan_layer(const VkgemmContext* context, VkgemmError* error) {
  VkgemmPlan* plan = NULL;
  VkgemmEpilogue epilogue;
  vkgemm_epilogue_init(&epilogue, sizeof epilogue);
  epilogue.alpha = 1.25f;
  epilogue.beta = 0.5f;
  epilogue.bias = VKGEMM_BIAS_ALONG_N;
  epilogue.activation = VKGEMM_ACTIVATION_GELU_ERF;
  VkgemmProblem problem;
  vkgemm_problem_init(&problem, sizeof problem);
  problem.m = 512;
  problem.n = 4096;
  problem.k = 1024;
  problem.epilogue = &epilogue;  // the parts that are null are at their defaults
  vkgemm_plan_create(context, &problem, NULL, &plan, error);
  return plan;
}

// Called as often as you like: vkgemm_plan_record() never allocates, compiles or submits.
VkgemmStatus record_layer(const VkgemmPlan* plan, VkCommandBuffer commands, VkgemmDeviceSpan a,
                          VkgemmDeviceSpan b, VkgemmDeviceSpan c, VkgemmDeviceSpan d,
                          VkgemmDeviceSpan bias, VkgemmDeviceSpan workspace, VkgemmError* error) {
  VkgemmOperands operands;
  vkgemm_operands_init(&operands, sizeof operands);
  operands.a = a;
  operands.b = b;
  operands.c = c;  // because beta is not 0
  operands.d = d;
  operands.bias = bias;
  operands.workspace = workspace;  // of vkgemm_plan_workspace_bytes()
  return vkgemm_plan_record(plan, commands, &operands, NULL, error);
}
