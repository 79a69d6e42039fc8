// What the rows of experiments.cpp call: each runs one experiment and fills the workplace's result.
#pragma once

namespace librt::bench {

class Workplace;

void run_perceptron(Workplace& workplace);
void run_text(Workplace& workplace);
void run_resnet50(Workplace& workplace);
void run_mixed_precision(Workplace& workplace);
void run_batch(Workplace& workplace);
void run_input(Workplace& workplace);
void run_memory(Workplace& workplace);
void run_transfer(Workplace& workplace);
void run_scaling(Workplace& workplace);
void run_matmul(Workplace& workplace);
void run_tabular(Workplace& workplace);

}  // namespace librt::bench
