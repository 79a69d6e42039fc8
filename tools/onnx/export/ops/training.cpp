// Operators that only entries for training have, or applications: why an ONNX file has none of them.
#include "tools/onnx/export/node_writer.h"

namespace librt::onnx {
namespace {

constexpr const char* kGradient = "a gradient; ONNX has no operator for it. Write the entry for inference";
constexpr const char* kTrainingOnly = "only training computes it. Write the entry for inference";
constexpr const char* kRanks = "it exchanges data between the ranks of a training; ONNX has no such operator";
constexpr const char* kOptimizer =
    "an optimizer's quantized state; ONNX has no such operator. Write the entry for inference";

constexpr ExportRow kTraining[] = {
    {OpKind::ConvWeightGrad, nullptr, kGradient},
    {OpKind::MaxPoolGrad, nullptr, kGradient},
    {OpKind::AveragePoolGrad, nullptr, kGradient},
    {OpKind::BatchNormTrain, nullptr, kTrainingOnly},
    {OpKind::BatchNormGrad, nullptr, kGradient},
    {OpKind::SgdStep, nullptr, kTrainingOnly},
    {OpKind::AdamStep, nullptr, kTrainingOnly},
    {OpKind::LSTMGrad, nullptr, kGradient},
    {OpKind::GRUGrad, nullptr, kGradient},
    {OpKind::RNNGrad, nullptr, kGradient},
    {OpKind::RoiAlignGrad, nullptr, kGradient},
    {OpKind::ScatterAdd, nullptr, kGradient},
    {OpKind::CtcLoss, nullptr, "a loss with its gradient; ONNX has no operator for it"},
    {OpKind::AllReduce, nullptr, kRanks},
    {OpKind::AllGather, nullptr, kRanks},
    {OpKind::CollectiveWait, nullptr, kRanks},
    {OpKind::RankShard, nullptr, kRanks},
    {OpKind::BlockQuantize, nullptr, kOptimizer},
    {OpKind::BlockDequantize, nullptr, kOptimizer},
    {OpKind::BlockwiseStep, nullptr, kOptimizer},
    {OpKind::Custom, nullptr,
     "an operator of the application; its ONNX form is in the file that it came from"},
};

}  // namespace

std::span<const ExportRow> export_rows_training() {
  return kTraining;
}

}  // namespace librt::onnx
