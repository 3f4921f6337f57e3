"""Lets torchvision be imported beside a PyTorch that it was not compiled for. Kept for the CPU build of vLLM.

Some registries have no torchvision that fits the CPU build of PyTorch. Its compiled part then can't be loaded, and its
import ends with "operator torchvision::nms does not exist". Processors of images need none of these operators, so
their names are declared: calling one is still an error.

`make vllm` puts this file and a .pth that imports it into the environment's site-packages, if the import fails there.
"""

import sys
from importlib.abc import MetaPathFinder


class _BeforeTorchvision(MetaPathFinder):
    """Declares the operators when torchvision is about to be imported, and finds nothing itself."""

    def find_spec(self, name, path=None, target=None):
        if name == "torchvision":
            sys.meta_path.remove(self)
            import torch

            library = torch.library.Library("torchvision", "DEF")
            library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
            library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
            self.kept = library  # an operator lives as long as its library
            sys.modules[__name__]._kept = self
        return None


sys.meta_path.insert(0, _BeforeTorchvision())
